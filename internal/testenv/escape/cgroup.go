package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// controls are files by which a cgroup is steered, or left.
const controls = `cgroup.procs tasks cgroup.kill cgroup.freeze cgroup.subtree_control cgroup.type release_agent notify_on_release memory.max memory.high memory.oom.group
memory.limit_in_bytes pids.max cpu.max cpu.weight cpu.cfs_quota_us io.max cpuset.cpus devices.allow freezer.state`

// cgroups says that no cgroup can be seen but the own one's root, none can be steered, and no limit of the own can be raised.
func cgroups(p *probe) {
	b, err := os.ReadFile("/proc/self/cgroup")
	p.info("/proc/self/cgroup", "%d lines %s", strings.Count(string(b), "\n"), errnoName(err))
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 {
			p.holds("own cgroup of "+parts[0]+":"+parts[1], parts[2] == "/", "%s", parts[2])
		}
	}
	p.cgroupFiles()
	p.cgroupMounts()
	p.limits()
}

func (p *probe) cgroupFiles() {
	dirs := []string{"/sys/fs/cgroup", "/cgroup", "/sys/fs/cgroup/unified"}
	table, _ := mountTable()
	var mounted []string
	for _, m := range table {
		if strings.HasPrefix(m.fs, "cgroup") {
			mounted = append(mounted, m.path)
		}
	}
	p.none("cgroup file systems", mounted)
	for _, dir := range append(dirs, mounted...) {
		if _, err := os.Lstat(dir); err != nil {
			continue
		}
		p.refused("make a cgroup in "+dir, unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS))
		for _, name := range strings.Fields(controls) {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				p.refused("open "+path, openOnly(path, unix.O_WRONLY))
			}
		}
	}
}

// cgroupMounts tries to get a view of the hierarchies. A version 1 mount could take a controller away from version 2, so
// that is left to sandboxes.
func (p *probe) cgroupMounts() {
	a := newArena()
	defer a.free()
	mount := func(fs, data string) step {
		return call(unix.SYS_MOUNT, a.str("none"), a.str("/tmp"), a.str(fs), 0, a.str(data))
	}
	p.refused("mount cgroup2", p.inMounts(a, mount("cgroup2", "")).err())
	p.refused("mount cgroup2 in new namespaces", attempt(call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWCGROUP).orEnd(), mount("cgroup2", "")).err())
	if !p.boxed {
		return
	}
	for _, controller := range []string{"memory", "pids", "cpu", "devices", "rdma", "freezer", "none,name=escape"} {
		p.refused("mount cgroup "+controller, p.inMounts(a, mount("cgroup", controller)).err())
	}
}

// limits tries to raise each hard limit by one, in a child.
func (p *probe) limits() {
	const kinds = 16
	a := newArena()
	defer a.free()
	var endless []string
	for resource := range kinds {
		var now unix.Rlimit
		if err := unix.Prlimit(0, resource, nil, &now); err != nil {
			p.info(fmt.Sprintf("limit %d", resource), "%s", errnoName(err))
			continue
		}
		if now.Max == unix.RLIM_INFINITY {
			endless = append(endless, fmt.Sprint(resource))
			continue
		}
		more := a.words(now.Cur, now.Max+1)
		p.refused(fmt.Sprintf("raise limit %d", resource), attempt(call(unix.SYS_PRLIMIT64, 0, uintptr(resource), more, 0)).err())
	}
	p.info("limits that have no end", "%s", listed(endless))
}
