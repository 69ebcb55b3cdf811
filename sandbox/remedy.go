package sandbox

import (
	"cmp"
	"errors"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// Remedy returns how to provide what the failed start lacked on this machine, or ""
// if that is unknown.
func Remedy(err error) string {
	switch {
	case errors.Is(err, unix.EMFILE):
		return "raise the limit of open files (ulimit -n 65536, LimitNOFILE= of a unit)"
	case errors.Is(err, unix.ENFILE):
		return "type as root: sysctl -w fs.file-max=1000000"
	case errors.Is(err, unix.EAGAIN) && !ofASocket(err):
		return "raise the limit of processes (pids.max of its cgroups, ulimit -u, TasksMax= of a unit)"
	case errors.Is(err, ErrDiedAtBirth):
		return "see whether a limit of processes or memory is reached (pids.max, memory.max of the cgroups that toolhost is in)"
	}
	return ""
}

// ofASocket: one that its owner, maybe a tool, serves too slowly.
func ofASocket(err error) bool {
	_, ok := errors.AsType[*net.OpError](err)
	return ok
}

func (e *SetupError) remedy() string {
	if e.TooFewFiles() {
		return "raise the call's own limit of open files"
	}
	if e.Step == wire.StepLimits && errors.Is(e.Err, unix.EPERM) {
		return "raise the host's hard limit of open files (ulimit -Hn 65536 as root, LimitNOFILE= of a unit): calls have a higher one"
	}
	if remedy, ok := networkRemedies[e.Step]; ok {
		return remedy
	}
	remedy := Remedy(e.Err)
	switch {
	case remedy != "":
	case e.Step == wire.StepClone && errors.Is(e.Err, unix.ENOSPC):
		return cmp.Or(namespaceLimitRemedy(""), "raise the sysctls user.max_*_namespaces, one of which is reached")
	case e.Step == wire.StepClone && errors.Is(e.Err, unix.EPERM):
		return userNamespaceRemedy()
	case !e.ofGrants():
	case e.ofPlaces() && errors.Is(e.Err, unix.EACCES):
		return "the call may not enter a folder on the way there, which it is granted with another one; have that let it in (chmod o+x), or grant no more than is needed"
	case strings.HasPrefix(e.Step, wire.StepShow):
		return "something else that the call is granted has a link or a file in its way; grant what that leads to, or leave one of the two out"
	case strings.HasPrefix(e.Step, wire.StepProtect):
		return "it was moved or replaced while the call started; grant what is needed beside it"
	}
	return remedy
}

// ofGrants says whether it was a step of what the call is granted, which failed for that, as
// where the call's user may not pass a folder. A mount can fail for what the machine lacks, too.
func (e *SetupError) ofGrants() bool {
	reasons := []error{unix.ELOOP, unix.ENOTDIR, unix.ENOENT, unix.EEXIST, unix.EROFS, unix.ESTALE, unix.EXDEV, unix.EACCES}
	switch {
	case e.ofPlaces():
	case strings.HasPrefix(e.Step, wire.StepStage), strings.HasPrefix(e.Step, wire.StepMap):
		reasons = append(reasons, unix.EINVAL) // of a file system that cannot do it
	default:
		return false
	}
	return slices.ContainsFunc(reasons, func(why error) bool { return errors.Is(e.Err, why) })
}

// ofPlaces says whether it was a step that walks to the place of a mount.
func (e *SetupError) ofPlaces() bool {
	return strings.HasPrefix(e.Step, wire.StepShow) || strings.HasPrefix(e.Step, wire.StepProtect)
}

// networkRemedies are those of the steps that only calls with network grants have.
var networkRemedies = map[string]string{
	"configure the network":        "allow netlink(7) route sockets where toolhost runs, which a seccomp profile of a container may deny, or grant no network",
	"add a network address":        "allow CAP_NET_ADMIN in user namespaces, which an AppArmor or SELinux profile may deny, or grant no network",
	"add a network route":          "run a kernel with local routes to whole networks (AnyIP) and allow CAP_NET_ADMIN in user namespaces, or grant no network",
	"listen on the call's network": "allow CAP_NET_BIND_SERVICE in user namespaces, for ports below 1024, which an AppArmor or SELinux profile may deny, or grant no network",
	"open the network's counters":  "show /proc/self/net/snmp where toolhost runs, which a container may mask, or grant no network",
}

// OfTheHost reports whether a start failed because of this machine, so that others
// fail, too, rather than because of its own call.
func OfTheHost(err error) bool {
	setup, ok := errors.AsType[*SetupError](err)
	switch {
	case ok && setup.TooFewFiles():
		return false
	case errors.Is(err, ErrDiedAtBirth), errors.Is(err, errZygoteGone), Remedy(err) != "":
		return true
	case !ok, setup.Executing(), setup.ofGrants():
		return false
	}
	return true
}

const userNamespaceHint = "allow user namespaces with their capabilities; see toolhost doctor"

// userNamespaceRemedy names what on this machine stands against user
// namespaces.
func userNamespaceRemedy() string {
	for _, s := range []struct{ file, bad, remedy string }{
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor restricts user namespaces (Ubuntu 23.10 and newer): install the deb or rpm of toolhost, which brings the profile /etc/apparmor.d/toolhost for /usr/bin/toolhost, or type as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "type as root: sysctl -w kernel.unprivileged_userns_clone=1 (Debian's older kernels)"},
	} {
		if text, err := os.ReadFile(s.file); err == nil && strings.TrimSpace(string(text)) == s.bad {
			return s.remedy
		}
	}
	if remedy := namespaceLimitRemedy(""); remedy != "" {
		return remedy
	}
	if _, err := os.Stat("/.dockerenv"); err == nil {
		return "let the container make namespaces: docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
	}
	if os.Geteuid() == 0 {
		return "allow user namespaces where toolhost runs: a chroot and the seccomp profile of a container forbid them"
	}
	return "allow user namespaces, or run as root"
}

// namespaceLimitRemedy is that where the limit of a kind of namespaces is 0; root is
// "" but in tests.
func namespaceLimitRemedy(root string) string {
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		text, err := os.ReadFile(root + "/proc/sys/user/max_" + kind + "_namespaces")
		if err == nil && strings.TrimSpace(string(text)) == "0" {
			return "type as root: sysctl -w user.max_" + kind + "_namespaces=15000"
		}
	}
	return ""
}
