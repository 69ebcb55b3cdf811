package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const roleVar = "SANDBOX_TEST_ROLE"

var roles = map[string]func(args []string) int{
	"exit7":    func([]string) int { return 7 },
	"killself": func([]string) int { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); wait.Forever(); return 0 },
	"wait":     func([]string) int { _, _ = io.Copy(io.Discard, os.Stdin); return 0 },
	"sleep": func([]string) int {
		fmt.Println("sleeping")
		_, _ = os.Stdin.Read(make([]byte, 1))
		wait.Forever()
		return 0
	},
	"echo":     func([]string) int { fmt.Println("ready"); _, _ = io.Copy(os.Stdout, os.Stdin); return 0 },
	"killinit": killInit,
	"tree":     playTree,
	"listen":   listen,
	"do":       do,
}

func play(role string, args []string) int {
	f, ok := roles[role]
	if !ok {
		fmt.Fprintf(os.Stderr, "bug: no role %q\n", role)
		return 2
	}
	return f(args)
}

func killInit([]string) int {
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		_ = syscall.Kill(1, sig)
	}
	fmt.Println("still here, pid", os.Getpid())
	return 0
}

// playTree leaves a grandchild in a session of its own, which holds stdout.
func playTree([]string) int {
	child := exec.Command("/proc/self/exe")
	child.Env = []string{roleVar + "=sleep"}
	child.Stdin, child.Stdout = os.Stdin, os.Stdout
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	wait.Forever()
	return 0
}

// listen greets one caller and waits.
func listen([]string) int {
	l, err := net.Listen("unix", socketDir+"/s")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	conn, err := l.Accept()
	if err != nil {
		return 1
	}
	_, _ = io.WriteString(conn, "hello")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// do does one thing for each argument, verb:object, and prints a line each.
func do(args []string) int {
	for _, arg := range args {
		verb, object, _ := strings.Cut(arg, ":")
		answer, err := deeds[verb](object)
		if err != nil {
			answer = "error " + errnoName(err)
		}
		fmt.Println(answer)
	}
	return 0
}

func errnoName(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

var deeds = map[string]func(object string) (string, error){
	"id": func(string) (string, error) {
		groups, err := os.Getgroups()
		return fmt.Sprint(os.Getuid(), os.Geteuid(), os.Getgid(), os.Getegid(), groups), err
	},
	"loopback": func(string) (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		_, err = net.DialTimeout("tcp", l.Addr().String(), wait.Bound)
		return "ok", err
	},
	"queue": makeQueue,
	"env":   func(string) (string, error) { return strings.Join(os.Environ(), " "), nil },
	"cwd":   func(string) (string, error) { return os.Getwd() },
	"fds": func(string) (string, error) {
		var open []int
		for fd := range 4096 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				open = append(open, fd)
			}
		}
		return fmt.Sprint(open), nil
	},
	"read": func(path string) (string, error) {
		text, err := os.ReadFile(path)
		return string(text), err
	},
	"list": func(path string) (string, error) {
		entries, err := os.ReadDir(path)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " "), err
	},
	"stat": func(path string) (string, error) {
		var st unix.Stat_t
		err := unix.Lstat(path, &st)
		return fmt.Sprintf("%d %d %#o", st.Uid, st.Gid, st.Mode&0o7777), err
	},
	"make":   func(path string) (string, error) { return makeFile(path, 0o640) },
	"mkdir":  func(path string) (string, error) { return "ok", os.Mkdir(path, 0o750) },
	"rm":     func(path string) (string, error) { return "ok", os.Remove(path) },
	"append": appendTo,
	"move":   func(path string) (string, error) { return "ok", os.Rename(path, path+".moved") },
	"link": func(pair string) (string, error) {
		to, path, _ := strings.Cut(pair, ">")
		return "ok", os.Symlink(to, path)
	},
	"fill": fill,
	"length": func(path string) (string, error) {
		text, err := os.ReadFile(path)
		return fmt.Sprint(len(text)), err
	},
	"chmod": func(path string) (string, error) { return "ok", os.Chmod(path, 0o644) },
	// Raw, for Go's Chmod leaves the bit to another constant.
	"setuid": func(path string) (string, error) {
		if _, err := makeFile(path, 0o700); err != nil {
			return "", err
		}
		return "ok", unix.Chmod(path, 0o4700)
	},
	"mknod": func(path string) (string, error) {
		return "ok", unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	},
	"mountflags": func(path string) (string, error) {
		var st unix.Statfs_t
		err := unix.Statfs(path, &st)
		var names []string
		for _, f := range []struct {
			flag int64
			name string
		}{{unix.ST_NODEV, "nodev"}, {unix.ST_NOSUID, "nosuid"}, {unix.ST_NOEXEC, "noexec"}, {unix.ST_RDONLY, "ro"}} {
			if st.Flags&f.flag != 0 {
				names = append(names, f.name)
			}
		}
		return strings.Join(names, " "), err
	},
	// What a process can learn of the launcher's start.
	"initargs": func(string) (string, error) {
		args, err := os.ReadFile("/proc/1/cmdline")
		env, _ := os.ReadFile("/proc/1/environ")
		return fmt.Sprintf("%q", string(args)+string(env)), err
	},
	"host": func(string) (string, error) { return os.Hostname() },
}

func makeFile(path string, mode os.FileMode) (string, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return "", err
	}
	_, err = file.WriteString("made")
	return "ok", errors.Join(err, file.Close())
}

func appendTo(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	_, err = file.WriteString("+")
	return "ok", errors.Join(err, file.Close())
}

// fill writes until it is refused and says why, and after how many KiB.
func fill(path string) (string, error) {
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	for n := 0; n < 64<<10; n++ {
		if _, err := file.Write(make([]byte, 1024)); err != nil {
			return fmt.Sprintf("%s after %d", errnoName(err), n), nil
		}
	}
	return "no end", nil
}

// makeQueue makes a POSIX message queue, which must not be there (mq_open(2)).
func makeQueue(name string) (string, error) {
	b, err := unix.BytePtrFromString(name)
	if err != nil {
		return "", err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(b)), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600, 0, 0, 0)
	if errno != 0 {
		return "", errno
	}
	return "ok", unix.Close(int(fd))
}
