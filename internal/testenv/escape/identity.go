package escape

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lastCapability is higher than any capability that a kernel has.
const lastCapability = 63

// identity holds what the tool is against what it should be: nobody.
func identity(p *probe) {
	p.threads()
	p.ids()
	p.idMaps()
	p.noWayToRoot()
	p.capabilitiesStayAway()
	p.setuidFiles()
	p.fileCapability()
	p.session()
}

// threads looks at every thread's status: restrictions are bound to threads, and one that was forgotten is enough.
func (p *probe) threads() {
	wrong := map[string][]string{}
	want := map[string]string{"CapInh": "0", "CapPrm": "0", "CapEff": "0", "CapBnd": "0", "CapAmb": "0", "NoNewPrivs": "1", "Seccomp": "2"}
	files, _ := filepath.Glob("/proc/self/task/*/status")
	p.holds("threads can be seen", len(files) > 0, "%d", len(files))
	for _, file := range files {
		status := fields(file)
		for name, value := range want {
			if got := strings.TrimLeft(status[name], "0"); got != strings.TrimLeft(value, "0") {
				wrong[name] = append(wrong[name], fmt.Sprintf("%s=%s", filepath.Base(filepath.Dir(file)), status[name]))
			}
		}
	}
	for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"} {
		p.none("threads whose "+name+" is not "+want[name], wrong[name])
	}
	p.info("Seccomp_filters", "%s", fields("/proc/self/status")["Seccomp_filters"])
}

func (p *probe) ids() {
	ruid, euid, suid := unix.Getresuid()
	p.holds("uid", allSame(p.env.UID, ruid, euid, suid), "%d %d %d, expected %d", ruid, euid, suid, p.env.UID)
	rgid, egid, sgid := unix.Getresgid()
	p.holds("gid", allSame(p.env.GID, rgid, egid, sgid), "%d %d %d, expected %d", rgid, egid, sgid, p.env.GID)
	got, err := unix.Getgroups()
	slices.Sort(got)
	want := slices.Sorted(slices.Values(p.env.Groups))
	p.holds("supplementary groups", err == nil && slices.Equal(got, want), "%v, expected %v %s", got, want, errnoName(err))
	umask, err := strconv.ParseUint(fields("/proc/self/status")["Umask"], 8, 32)
	p.holds("umask keeps others from writing", err == nil && umask&0o002 != 0, "%#o", umask)
}

// allSame says that the three ids are the expected one, or, if none is, that they are one and not root's.
func allSame(want, r, e, s int) bool {
	if want == 0 {
		return r != 0 && r == e && e == s
	}
	return r == want && e == want && s == want
}

// idMaps says that no id inside stands for root outside, and that maps are final.
func (p *probe) idMaps() {
	for _, name := range []string{"uid_map", "gid_map"} {
		b, err := os.ReadFile("/proc/self/" + name)
		var inside, outside, count int64
		root := err != nil
		for line := range strings.Lines(string(b)) {
			if _, err := fmt.Sscan(line, &inside, &outside, &count); err != nil || outside == 0 {
				root = true
			}
		}
		p.holds(name+" spares root", !root, "%q %s", strings.Join(strings.Fields(string(b)), " "), errnoName(err))
		p.refused("write "+name, writeAs("/proc/self/"+name, "0 0 1\n"))
	}
	p.refused("write setgroups", writeAs("/proc/self/setgroups", "allow"))
	p.refused("lower oom_score_adj", writeAs("/proc/self/oom_score_adj", "-1000"))
}

// writeAs writes to a file in /proc/self of a child that ends then.
func writeAs(path, text string) error {
	a := newArena()
	defer a.free()
	o := attempt(
		call(unix.SYS_OPENAT, minus(-unix.AT_FDCWD), a.str(path), unix.O_WRONLY).orEnd(),
		call(unix.SYS_WRITE, 0, a.str(text), uintptr(len(text))).with(1, 0),
	)
	return o.err()
}

// noWayToRoot tries to become root, or another user.
func (p *probe) noWayToRoot() {
	a := newArena()
	defer a.free()
	zero, some := a.words(0), a.words(65534<<32|1)
	for _, t := range []struct {
		name string
		step step
	}{
		{"setuid 0", call(unix.SYS_SETUID, 0)},
		{"setreuid 0", call(unix.SYS_SETREUID, 0, 0)},
		{"setresuid 0", call(unix.SYS_SETRESUID, 0, 0, 0)},
		{"setresuid saved 0", call(unix.SYS_SETRESUID, minus(1), minus(1), 0)},
		{"setuid 65533", call(unix.SYS_SETUID, 65533)},
		{"setgid 0", call(unix.SYS_SETGID, 0)},
		{"setregid 0", call(unix.SYS_SETREGID, 0, 0)},
		{"setresgid 0", call(unix.SYS_SETRESGID, 0, 0, 0)},
		{"setgid 65533", call(unix.SYS_SETGID, 65533)},
		{"setgroups none", call(unix.SYS_SETGROUPS, 0, 0)},
		{"setgroups 0", call(unix.SYS_SETGROUPS, 1, zero)},
		{"setgroups 1 65534", call(unix.SYS_SETGROUPS, 2, some)},
		{"real-time scheduler", call(unix.SYS_SCHED_SETSCHEDULER, 0, 1, a.words(1))},
		{"nice -20", call(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, minus(20))},
		{"real-time io", call(unix.SYS_IOPRIO_SET, 1, 0, 1<<13)},
	} {
		p.refused(t.name, attempt(t.step).err())
	}
	for _, t := range []struct {
		name string
		nr   uintptr
	}{{"setfsuid 0", unix.SYS_SETFSUID}, {"setfsgid 0", unix.SYS_SETFSGID}} {
		// It returns the id before and never an error: the second call tells what the first did.
		all := script(0, call(t.nr, 0), call(t.nr, minus(1)))
		o := all[1]
		p.add(Fact{Case: t.name, Errno: o.name(), Escaped: o.ran && o.errno == 0 && o.ret == 0})
	}
}

// capabilitiesStayAway tries to gain a capability, and to undo what keeps them away.
func (p *probe) capabilitiesStayAway() {
	var bounding, ambient []string
	for capability := range uintptr(lastCapability) {
		if v, err := prctl(unix.PR_CAPBSET_READ, capability, 0); err == nil && v == 1 {
			bounding = append(bounding, strconv.Itoa(int(capability)))
		}
		if _, err := prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, capability); err == nil {
			ambient = append(ambient, strconv.Itoa(int(capability)))
		}
	}
	p.none("bounding set", bounding)
	p.none("ambient raise", ambient)

	a := newArena()
	defer a.free()
	header := a.words(unix.LINUX_CAPABILITY_VERSION_3)
	none, one, all := uint64(0), uint64(1)<<unix.CAP_NET_RAW, ^uint64(0)
	for _, t := range []struct {
		name                            string
		effective, permitted, inherited uint64
	}{{"capset all", all, all, all}, {"capset permitted net_raw", none, one, none}, {"capset effective net_raw", one, one, none}, {"capset inheritable net_raw", none, none, one}} {
		data := a.bytes(capData(t.effective, t.permitted, t.inherited))
		p.refused(t.name, attempt(call(unix.SYS_CAPSET, header, data)).err())
	}
	p.refused("unset no_new_privs", attempt(call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)).err())
	p.refused("set securebits", attempt(call(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, 0, 0, 0, 0)).err())
	p.refused("drop from bounding set", attempt(call(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, 0, 0, 0, 0)).err())
	for _, t := range []struct {
		name   string
		option uintptr
		want   uintptr
	}{{"no_new_privs by prctl", unix.PR_GET_NO_NEW_PRIVS, 1}, {"seccomp by prctl", unix.PR_GET_SECCOMP, 2}, {"keepcaps", unix.PR_GET_KEEPCAPS, 0}} {
		v, err := prctl(t.option, 0, 0)
		p.holds(t.name, err != nil || v == t.want, "%d %s", v, errnoName(err))
	}
	bits, err := prctl(unix.PR_GET_SECUREBITS, 0, 0)
	p.info("securebits", "%#x %s", bits, errnoName(err))
}

// prctl works on a child, so that nothing of what it sets stays.
func prctl(option, a, b uintptr) (uintptr, error) {
	o := attempt(call(unix.SYS_PRCTL, option, a, b, 0, 0))
	return o.ret, o.err()
}

// capData is struct __user_cap_data_struct[2]: the low words of the three sets, then the high ones.
func capData(effective, permitted, inheritable uint64) []byte {
	var b []byte
	for shift := 0; shift <= 32; shift += 32 {
		for _, set := range []uint64{effective, permitted, inheritable} {
			b = binary.NativeEndian.AppendUint32(b, uint32(set>>shift))
		}
	}
	return b
}

// setuidFiles says that no file that would change its user's identity can be executed to that effect.
func (p *probe) setuidFiles() {
	var bad []string
	seen := 0
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/bin", "/sbin", "/usr/local/bin"} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if info, err := d.Info(); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				seen++
				if !noSuid(path) {
					bad = append(bad, path)
				}
			}
			return nil
		})
	}
	p.none("setuid files on mounts without nosuid", bad)
	p.info("setuid files", "%d", seen)
	for _, dir := range append([]string{"/", "/usr", "/dev", "/proc", "/tmp"}, p.env.writable()...) {
		if _, err := os.Lstat(dir); err == nil {
			p.holds("nosuid "+dir, noSuid(dir), "")
		}
	}
}

func noSuid(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.ST_NOSUID != 0
}

// fileCapability tries to give a file of its own capabilities (struct vfs_cap_data, revision 2, CAP_NET_RAW).
func (p *probe) fileCapability() {
	dir, remove := p.scratch()
	defer remove()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		p.info("file capability", "nothing can be written: %s", errnoName(err))
		return
	}
	var data []byte
	for _, word := range []uint32{0x02000001, 1 << unix.CAP_NET_RAW, 0, 0, 0} {
		data = binary.LittleEndian.AppendUint32(data, word)
	}
	p.refused("set file capability", unix.Setxattr(path, "security.capability", data, 0))
	p.refused("set trusted xattr", unix.Setxattr(path, "trusted.escape", []byte("x"), 0))
	p.refused("chown to root", unix.Lchown(path, 0, 0))
	p.refused("chown to 65533", unix.Lchown(path, 65533, 65533))
}

// session says that there is no terminal, and that the session's leader is inside.
func (p *probe) session() {
	p.refused("open /dev/tty", openOnly("/dev/tty", unix.O_RDWR))
	sid, err := unix.Getsid(0)
	p.holds("session leader is inside", err != nil || sid > 0, "sid %d, pid %d, ppid %d", sid, os.Getpid(), os.Getppid())
	p.holds("process group is inside", unix.Getpgrp() > 0, "pgrp %d", unix.Getpgrp())
	group, err := unix.IoctlGetInt(0, unix.TIOCGSID)
	p.holds("no session of a terminal", err != nil, "%d", group)
}
