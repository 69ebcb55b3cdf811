// Package shield starts children that cannot touch the process that started
// them, although they are the same user in the same namespaces: an adapter and
// the command that it runs.
package shield

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Start is os.StartProcess for a child that must not reach this process. From
// then on nobody but root can read this process's memory, environment or
// descriptors (PR_SET_DUMPABLE). Where Landlock has scopes (ABI 6, Linux 6.12)
// and this process may use it, the child and its descendants also cannot signal
// it, or connect to its abstract sockets.
func Start(name string, argv []string, attr *os.ProcAttr) (process *os.Process, err error) {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	onOwnThread(func() {
		scope()
		process, err = os.StartProcess(name, argv, attr)
	})
	return process, err
}

// onOwnThread runs f on a thread that ends with it, and its restrictions with
// the thread. It is never the main thread: that can't end, and a process that
// may signal it may signal this process.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and, but for the main thread, never unlocked
		if unix.Gettid() == unix.Getpid() {
			onOwnThread(f) // while this goroutine occupies it
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// scope puts this thread, and what it forks, into a Landlock domain of their
// own, as far as the kernel can. Inside a sandbox, whose domain is about files, each
// further domain denies moving files between folders unless it has a rule for that;
// elsewhere such a rule would deny all mounts. A sandbox has no new privileges.
func scope() {
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || set != 0 {
		attr.Handled_access_fs = unix.LANDLOCK_ACCESS_FS_REFER
	}
	size := unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return
	}
	if attr.Handled_access_fs != 0 {
		allowAnywhere(ruleset, attr.Handled_access_fs)
	}
	_, _, _ = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0)
	_ = unix.Close(int(ruleset))
}

// allowAnywhere adds a rule for all files.
func allowAnywhere(ruleset uintptr, access uint64) {
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	anywhere := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(root)}
	_, _, _ = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&anywhere)), 0, 0, 0)
	_ = unix.Close(root)
}
