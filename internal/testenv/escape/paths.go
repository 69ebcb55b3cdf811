package escape

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// secrets are path patterns that a tool reads nothing from: absent, refused, or covered by /dev/null or an empty folder.
const secrets = `
/proc/kcore /proc/keys /proc/key-users /proc/kmsg /proc/kpagecount /proc/kpageflags /proc/kpagecgroup /proc/timer_list /proc/timer_stats
/proc/sched_debug /proc/latency_stats /proc/interrupts /proc/iomem /proc/ioports /proc/slabinfo /proc/vmallocinfo
/proc/pagetypeinfo /proc/acpi /proc/scsi /proc/asound /proc/sysrq-trigger /proc/1/environ /proc/1/maps /proc/1/smaps
/proc/1/smaps_rollup /proc/1/numa_maps /proc/1/mem /proc/1/auxv /proc/1/pagemap /proc/1/stack /proc/1/syscall /proc/1/io
/proc/1/personality /proc/1/patch_state /proc/1/timers /proc/1/root /proc/1/cwd /proc/1/exe /proc/1/fd /proc/1/fdinfo /proc/1/map_files
/proc/1/ns/* /proc/1/task/*/environ /proc/1/task/*/maps /proc/1/task/*/mem /proc/1/task/*/root /proc/1/task/*/cwd /proc/1/task/*/fd
/proc/1/root/etc/shadow /proc/1/cwd/etc/shadow
/sys /sys/* /sys/kernel/debug/* /sys/kernel/tracing/* /sys/kernel/security/* /sys/fs/cgroup/* /sys/fs/bpf/* /sys/firmware/*
/sys/kernel/uevent_helper /sys/class/dmi/id/* /sys/power/state /sys/block/*
/etc/shadow /etc/shadow- /etc/gshadow /etc/sudoers /etc/sudoers.d /etc/machine-id /var/lib/dbus/machine-id /etc/ssh /etc/ssl/private /etc/krb5.keytab
/etc/crontab /etc/cron.d /var/spool/cron /etc/fstab /etc/docker /etc/kubernetes /etc/NetworkManager /etc/systemd/system /etc/environment
/root /root/.ssh/* /root/.*history /root/.aws/* /root/.config/* /root/.docker/* /root/.netrc /root/.kube/* /root/.gitconfig /root/.npmrc /root/.gnupg/*
/home/* /home/*/.ssh/* /boot /lost+found /var/log /var/log/* /var/mail /var/lib/docker /var/lib/containerd /var/lib/kubelet /var/lib/toolhost
/run/* /run/secrets /run/systemd/* /run/dbus/* /run/user/* /run/docker.sock /var/run/docker.sock /run/containerd/* /run/crio/* /run/podman/*
/run/toolhost /var/run/secrets/* /.dockerenv /run/.containerenv
/mnt/* /media/* /srv/* /oldroot /old_root /.oldroot /.old_root /put_old /.put_old /.pivot_root* /host /hostfs /rootfs /newroot
/tmp/.X11-unix/* /tmp/systemd-private-*`

// fixed are path patterns that nobody writes to; reading is allowed.
const fixed = `
/proc/kallsyms /proc/diskstats /proc/partitions /proc/modules /proc/config.gz /proc/cmdline /proc/version /proc/mtrr /proc/swaps /proc/cpuinfo
/proc/irq/* /proc/bus/*/* /proc/fs/* /proc/fs/*/* /proc/driver/* /proc/sys /proc/self/pagemap /proc/self/auxv /proc/self/ns/* /proc/self/exe
/proc/1/comm /proc/1/oom_score_adj /proc/1/oom_adj /proc/1/coredump_filter /proc/1/clear_refs /proc/1/setgroups /proc/1/uid_map
/proc/1/gid_map /proc/1/sched /proc/1/autogroup /proc/1/loginuid /proc/1/timens_offsets /proc/1/make-it-fail /proc/1/mem
/etc/* /etc/ld.so.preload /etc/ssl/* /etc/alternatives/* / /usr /usr/* /bin /sbin /lib /lib64 /var /var/* /opt /opt/* /srv /mnt /media /home /run /dev /proc /sys`

// defaultTree are the patterns of what a minimal root holds.
const defaultTree = `
/bin /sbin /lib /lib32 /lib64 /libx32 /usr /usr/* /dev /dev/* /proc /proc/* /tmp /tmp/* /workspace /workspace/*
/etc /etc/passwd /etc/group /etc/nsswitch.conf /etc/hosts /etc/hostname /etc/resolv.conf /etc/localtime /etc/ssl /etc/ca-certificates /etc/pki
/etc/ca-certificates.conf /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/alternatives /etc/services /etc/protocols /etc/mime.types
/etc/terminfo /etc/inputrc /etc/timezone /etc/locale.alias /etc/locale.conf /etc/bash.bashrc /etc/profile /etc/python3* /etc/gitconfig /etc/os-release
/etc/fonts /etc/java-*-openjdk
/bin/* /sbin/* /lib/* /lib32/* /lib64/* /libx32/*`

// paths says that what holds secrets, or steers the kernel, can neither be read nor written.
func paths(p *probe) {
	for _, pattern := range strings.Fields(secrets) {
		for _, path := range matches(pattern) {
			if !p.env.allowed(path) {
				p.secret(path)
			}
		}
	}
	for _, path := range p.env.Absent {
		_, err := os.Lstat(path)
		p.refused("absent "+path, err)
	}
	for _, pattern := range strings.Fields(fixed) {
		for _, path := range matches(pattern) {
			if !p.env.allowed(path) {
				p.fixed(path)
			}
		}
	}
	p.sysctls()
	p.kernelInterfaces()
	p.devices()
	p.tree()
}

// matches are the paths that a pattern stands for: itself if it has no
// wildcard.
func matches(pattern string) []string {
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	found, _ := filepath.Glob(pattern)
	return found[:min(len(found), maxListed)]
}

// allowed says whether a path is writable or bound by design, or leads there.
func (e Expect) allowed(path string) bool {
	if e.mayWrite(path) {
		return !strings.HasPrefix(path, "/tmp/.") && !strings.HasPrefix(path, "/tmp/systemd-")
	}
	for _, dir := range e.Bound {
		if below(path, dir) {
			return true
		}
	}
	return false
}

// leadsTo says whether a path is on the way to one that is there by design.
func (e Expect) leadsTo(path string) bool {
	for _, list := range [][]string{e.Bound, e.writable()} {
		for _, dir := range list {
			if below(dir, path) {
				return true
			}
		}
	}
	return false
}

// secret adds a fact about a path that gives nothing away.
func (p *probe) secret(path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		if err == unix.ENXIO || err == unix.ENODEV { // a socket, or a device without its driver: it can be seen
			err = nil
		}
		p.refused("read "+path, err)
		return
	}
	defer unix.Close(fd)
	what := p.reveals(fd, path)
	p.holds("read "+path, what == "", "%s", what)
}

// reveals tells what an open descriptor gives away, "" for nothing. It does not read where reading takes something away.
func (p *probe) reveals(fd int, path string) string {
	var st unix.Stat_t
	var vfs unix.Statfs_t
	if unix.Fstat(fd, &st) != nil || unix.Fstatfs(fd, &vfs) != nil {
		return ""
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return p.entries(path)
	case unix.S_IFCHR:
		if st.Rdev == unix.Mkdev(1, 3) {
			return ""
		}
		return fmt.Sprintf("device %#x", st.Rdev)
	}
	if vfs.Type == unix.TMPFS_MAGIC && st.Size == 0 {
		return "" // an empty file in its place
	}
	if path == "/proc/kmsg" || path == "/proc/sysrq-trigger" {
		return fmt.Sprintf("opens, file system %#x", vfs.Type)
	}
	if n, err := unix.Pread(fd, make([]byte, 64), 0); err == nil && n > 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	if strings.HasSuffix(path, "/mem") || strings.Contains(path, "/ns/") {
		return "opens"
	}
	return ""
}

// entries lists a folder but for what is there by design.
func (p *probe) entries(dir string) string {
	list, _ := os.ReadDir(dir)
	var names []string
	for _, entry := range list {
		if below := path.Join(dir, entry.Name()); !p.env.allowed(below) && !p.env.leadsTo(below) {
			names = append(names, entry.Name())
		}
	}
	return listed(names)
}

// fixed adds a fact about a path that cannot be written.
func (p *probe) fixed(path string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3) {
		p.info("write "+path, "covered by /dev/null")
		return
	}
	if strings.HasPrefix(path, "/proc/") && st.Mode&unix.S_IFMT == unix.S_IFREG {
		p.refused("write "+path, openOnly(path, unix.O_WRONLY))
		return
	}
	p.refused("write "+path, p.mayWriteTo(path))
}

// sysctls opens every file in /proc/sys for writing.
func (p *probe) sysctls() {
	var open []string
	count := 0
	_ = filepath.WalkDir("/proc/sys", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			count++
			if openOnly(path, unix.O_WRONLY) == nil {
				open = append(open, path)
			}
		}
		return nil
	})
	p.none("writable sysctls", open)
	p.info("sysctls", "%d", count)
	for _, name := range []string{"kernel/core_pattern", "kernel/modprobe", "kernel/ns_last_pid", "kernel/hostname", "fs/binfmt_misc/register", "vm/overcommit_memory", "user/max_user_namespaces", "net/ipv4/ip_forward"} {
		p.refused("write sysctl "+name, openOnly("/proc/sys/"+name, unix.O_WRONLY))
	}
}

// kernelInterfaces opens what else is in /proc, and no process's, for writing.
func (p *probe) kernelInterfaces() {
	var open []string
	_ = filepath.WalkDir("/proc", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, "/proc/")
		switch {
		case err != nil:
		case d.IsDir() && (name == "sys" || name[0] >= '0' && name[0] <= '9' || strings.Count(path, "/") > 5):
			return fs.SkipDir
		case d.Type().IsRegular() && openOnly(path, unix.O_WRONLY) == nil:
			if below(path, "/proc/pressure") {
				p.info("write "+path, "makes a trigger; the kernel lets everybody")
				return nil
			}
			open = append(open, path)
		}
		return nil
	})
	p.none("writable in /proc", open)
}

// devices says that /dev holds what a program needs, and that what bears a harmless name is harmless. Nothing is opened:
// some devices act on that.
func (p *probe) devices() {
	harmless := map[string]uint64{
		"/dev/null": unix.Mkdev(1, 3), "/dev/zero": unix.Mkdev(1, 5), "/dev/full": unix.Mkdev(1, 7),
		"/dev/random": unix.Mkdev(1, 8), "/dev/urandom": unix.Mkdev(1, 9),
		"/dev/pts/ptmx": unix.Mkdev(5, 2), // of an instance of its own, or there would be terminals beside it
	}
	var unexpected []string
	_ = filepath.WalkDir("/dev", func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err != nil || unix.Lstat(path, &st) != nil {
			return nil
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			if path != "/dev" && path != "/dev/shm" && path != "/dev/pts" && path != "/dev/mqueue" && !p.env.mayWrite(path) {
				unexpected = append(unexpected, path)
			}
		case unix.S_IFLNK:
		case unix.S_IFCHR, unix.S_IFBLK:
			number, known := harmless[path]
			if !known || number != st.Rdev || st.Mode&unix.S_IFMT == unix.S_IFBLK {
				unexpected = append(unexpected, path)
			}
		default:
			if !p.env.mayWrite(path) {
				unexpected = append(unexpected, path)
			}
		}
		return nil
	})
	p.none("unexpected in /dev", unexpected)
	for _, name := range strings.Fields("mem kmem port kmsg kvm fuse net/tun vhost-net vhost-vsock vsock vda sda nvme0n1 loop-control loop0 mapper/control uinput tty0 console rtc0 userfaultfd cpu/0/msr hwrng watchdog log dri/card0 nvidia0") {
		_, err := os.Lstat("/dev/" + name)
		p.refused("device "+name, err)
	}
}

// tree says that / holds nothing but what was put there, two levels deep.
func (p *probe) tree() {
	patterns := p.env.Tree
	if patterns == nil {
		patterns = strings.Fields(defaultTree)
	}
	var unexpected []string
	look := func(dir string) (names []string) {
		list, _ := os.ReadDir(dir)
		for _, entry := range list {
			full := path.Join(dir, entry.Name())
			if !matchesAny(patterns, full) && !p.env.allowed(full) && !p.env.leadsTo(full) {
				unexpected = append(unexpected, full)
			}
			names = append(names, full)
		}
		return names
	}
	for _, top := range look("/") {
		if top != "/proc" {
			look(top)
		}
	}
	p.none("unexpected in /", unexpected)
}

func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}
