package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/internal/atomicfile"
	"golang.org/x/sys/unix"
)

// recallName is the file, in the folder that a user's hosts share, in which a
// trial call that met everything that it should is remembered: by a hash of all
// that it depends on.
const recallName = "trial"

// circumstances are what the kernel tells about this boot, this process and the
// rules that sandboxes are under. What this machine lacks is empty.
var circumstances = []string{
	"/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/version", "/sys/kernel/security/lsm",
	"/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
	"/proc/sys/kernel/apparmor_restrict_unprivileged_unconfined", "/proc/sys/vm/memfd_noexec",
	"/proc/self/attr/current", "/proc/self/mountinfo", "/proc/self/cgroup", "/proc/self/uid_map", "/proc/self/gid_map",
}

// Recall returns the features without a trial, if an earlier host of this user had
// a trial under the same conditions that found all expected features. It is for
// programs that make one call: the start notices a mechanism that fails, but not a
// kernel that silently no longer enforces one, as a trial would.
func (h *Host) Recall() (f Features, ok bool) {
	f = h.assume()
	known, err := h.readRecalled()
	if err != nil || known != f.circumstances() {
		return Features{}, false
	}
	f.lifetimes = isolations()[0]
	return f, true
}

// Forget deletes the result for Recall, so that the next host probes again.
func (h *Host) Forget() error {
	err := os.Remove(h.recallPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (h *Host) recallPath() string { return filepath.Join(h.idDir, recallName) }

func (h *Host) readRecalled() (string, error) {
	file, err := os.OpenFile(h.recallPath(), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return "", fs.ErrPermission
	}
	known := make([]byte, hex.EncodedLen(sha256.Size))
	n, err := file.Read(known)
	return string(known[:n]), err
}

// remember keeps what a trial has found. Without it, or with half of it, the next host tries again.
func (h *Host) remember(f Features) {
	_ = atomicfile.Write(h.recallPath(), []byte(f.circumstances()), atomicfile.Options{Unsynced: true})
}

// circumstances is a hash of all that a trial's outcome depends on: what is
// assumed before it, the launcher, the process's rights, and the kernel's rules.
func (f Features) circumstances() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%+v\n%x\n", f, sha256.Sum256(launcherImage))
	limits, _ := filepath.Glob("/proc/sys/user/max_*_namespaces")
	for _, path := range slices.Concat(circumstances, limits) {
		content := kernelFile(path)
		fmt.Fprintf(sum, "%s %d %s\n", path, len(content), content)
	}
	namespaces, _ := filepath.Glob("/proc/self/ns/*")
	for _, path := range namespaces {
		to, _ := os.Readlink(path)
		fmt.Fprintln(sum, path, to)
	}
	for line := range strings.Lines(string(kernelFile("/proc/self/status"))) {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "Seccomp") {
			fmt.Fprint(sum, line)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// kernelFile is the content of a file of the kernel, as far as it can be read. os.ReadFile
// would offer each of these files to the poller first, which takes twice as long.
func kernelFile(path string) (content []byte) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for buf := make([]byte, 4<<10); ; {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return content
		}
		content = append(content, buf[:n]...)
	}
}
