package escape

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// namespaces says that the tool is in namespaces of its own, and that no other can be entered or made.
func namespaces(p *probe) {
	p.own()
	p.enter()
	p.leave()
	p.cloneNew()
	p.clone3New()
	p.relatives()
	p.names()
}

// own compares inode numbers with the host's.
func (p *probe) own() {
	for _, kind := range namespaceKinds() {
		inode, err := inodeOf("/proc/self/ns/" + kind.name)
		host := kind.initial
		if known, ok := p.env.Namespaces[kind.name]; ok {
			host = known
		}
		// Sharing the clocks' offsets gives nothing away.
		shared := inode == host && kind.name != "time" && !(kind.name == "net" && p.env.HostNetwork)
		p.holds("own "+kind.name, err != nil || !shared, "%d, host %d %s", inode, host, errnoName(err))
	}
	for _, kind := range []string{"pid", "time"} {
		mine, _ := os.Readlink("/proc/self/ns/" + kind)
		children, err := os.Readlink("/proc/self/ns/" + kind + "_for_children")
		p.holds(kind+" for children", err != nil || mine == children, "%s %s", mine, children)
	}
	p.info("NSpid", "%s", fields("/proc/self/status")["NSpid"])
}

// enter tries to join the namespaces of PID 1, of the parent and of the host's process, by /proc and by pidfd.
func (p *probe) enter() {
	a := newArena()
	defer a.free()
	cwd := minus(-unix.AT_FDCWD)
	for who, pid := range p.others() {
		for _, kind := range namespaceKinds() {
			path := fmt.Sprintf("/proc/%d/ns/%s", pid, kind.name)
			o := attempt(call(unix.SYS_OPENAT, cwd, a.str(path), unix.O_RDONLY).orEnd(), call(unix.SYS_SETNS, 0, 0).with(1, 0))
			p.refused("setns to "+kind.name+" of "+who, o.err())
		}
		for _, flags := range []uintptr{unix.CLONE_NEWNS, unix.CLONE_NEWUSER, unix.CLONE_NEWPID | unix.CLONE_NEWNET} {
			o := attempt(call(unix.SYS_PIDFD_OPEN, uintptr(pid), 0).orEnd(), call(unix.SYS_SETNS, 0, flags).with(1, 0))
			p.refused(fmt.Sprintf("setns %#x by pidfd of %s", flags, who), o.err())
		}
	}
	for _, kind := range namespaceKinds() {
		o := attempt(call(unix.SYS_OPENAT, cwd, a.str("/proc/self/ns/"+kind.name), unix.O_RDONLY).orEnd(), call(unix.SYS_SETNS, 0, kind.flag).with(1, 0))
		p.refused("setns to own "+kind.name, o.err())
	}
	p.blocked("setns at all", attempt(call(unix.SYS_SETNS, minus(1), 0)))
}

// others are the processes that are worth an attack, by what they are.
func (p *probe) others() map[string]int {
	pids := map[string]int{"pid 1": 1}
	if parent := os.Getppid(); parent > 1 {
		pids["the parent"] = parent
	}
	if host := p.env.HostPID; host > 1 && !mine(host) && host != os.Getppid() {
		pids["the host"] = host
	}
	return pids
}

// leave tries unshare with every flag, alone and with a user namespace.
func (p *probe) leave() {
	for _, kind := range namespaceKinds() {
		p.refused("unshare "+kind.name, attempt(call(unix.SYS_UNSHARE, kind.flag)).err())
		if kind.flag != unix.CLONE_NEWUSER {
			p.refused("unshare user and "+kind.name, attempt(call(unix.SYS_UNSHARE, kind.flag|unix.CLONE_NEWUSER)).err())
		}
		p.refused("unshare with a high bit "+kind.name, attempt(call(unix.SYS_UNSHARE, kind.flag|1<<33)).err())
	}
	p.info("unshare files", "%s", attempt(call(unix.SYS_UNSHARE, unix.CLONE_FILES)).name())
}

// cloneNew tries clone with every flag. The kernel ignores the high half of the flags: a filter must too.
func (p *probe) cloneNew() {
	nothing := call(unix.SYS_GETPID)
	for _, kind := range namespaceKinds() {
		if kind.name == "time" { // clone has no bit for it
			continue
		}
		p.refused("clone "+kind.name, script(kind.flag, nothing)[0].err())
		p.refused("clone with a high bit "+kind.name, script(kind.flag|1<<40, nothing)[0].err())
		p.refused("clone user and "+kind.name, script(kind.flag|unix.CLONE_NEWUSER|1<<63, nothing)[0].err())
	}
}

// clone3New tries clone3, whose flags a filter cannot see: it must not be there.
func (p *probe) clone3New() {
	a := newArena()
	defer a.free()
	try := func(name string, flags, setTID, setTIDSize, cgroup uint64) {
		// struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup.
		args := a.words(flags, 0, 0, 0, uint64(unix.SIGCHLD), 0, 0, 0, setTID, setTIDSize, cgroup)
		p.refused("clone3 "+name, attempt(call(unix.SYS_CLONE3, args, 88)).err())
	}
	for _, kind := range namespaceKinds() {
		try(kind.name, uint64(kind.flag), 0, 0, 0)
	}
	try("with a chosen pid", 0, uint64(a.words(30001)), 1, 0)
	try("into a cgroup", unix.CLONE_INTO_CGROUP, 0, 0, ^uint64(0))
	plain := attempt(call(unix.SYS_CLONE3, a.words(0, 0, 0, 0, uint64(unix.SIGCHLD), 0, 0, 0), 64))
	p.info("clone3", "%s: ENOSYS lets libc fall back to clone", plain.name())
	p.blocked("clone3 at all", attempt(call(unix.SYS_CLONE3, 1, 88)))
}

// relatives asks the kernel for the owner and parent of the own namespaces; a descriptor of one outside would be a way in.
func (p *probe) relatives() {
	const nsGetUserns, nsGetParent = 0xb701, 0xb702
	own, _ := inodeOf("/proc/self/ns/user")
	for _, kind := range namespaceKinds() {
		fd, err := unix.Open("/proc/self/ns/"+kind.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		requests := map[string]int{"owner": nsGetUserns}
		if kind.name == "user" || kind.name == "pid" {
			requests["parent"] = nsGetParent
		}
		for name, request := range requests {
			got, err := unix.IoctlRetInt(fd, uint(request))
			var st unix.Stat_t
			if err == nil {
				_ = unix.Fstat(got, &st)
				unix.Close(got)
			}
			p.holds(name+" of "+kind.name, err != nil || name == "owner" && st.Ino == own, "%d %s", st.Ino, errnoName(err))
		}
		unix.Close(fd)
	}
}

// names says that the host's name is not known, and that no name can be set. The attempts set the name that is there.
func (p *probe) names() {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		p.info("uname", "%s", errnoName(err))
		return
	}
	name, domain := unix.ByteSliceToString(u.Nodename[:]), unix.ByteSliceToString(u.Domainname[:])
	p.holds("hostname", p.env.Hostname == "" || name != p.env.Hostname, "%q", name)
	b, _ := os.ReadFile("/etc/hostname")
	p.holds("/etc/hostname", p.env.Hostname == "" || strings.TrimSpace(string(b)) != p.env.Hostname, "%q", b)
	a := newArena()
	defer a.free()
	p.refused("sethostname", attempt(call(unix.SYS_SETHOSTNAME, a.str(name), uintptr(len(name)))).err())
	p.refused("setdomainname", attempt(call(unix.SYS_SETDOMAINNAME, a.str(domain), uintptr(len(domain)))).err())
	p.info("boot id", "%s", errnoName(openOnly("/proc/sys/kernel/random/boot_id", unix.O_RDONLY)))
}
