package supervisor_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/api"
)

// space is a network namespace: its cookie (SO_NETNS_COOKIE), which no other has for
// as long as the machine runs, and its inode number.
type space struct {
	cookie uint64
	inode  uint32
}

func ownSpace() (s space, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return s, err
	}
	defer unix.Close(fd)
	if s.cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil {
		return s, err
	}
	link, err := os.Readlink("/proc/self/ns/net")
	if err == nil {
		_, err = fmt.Sscanf(link, "net:[%d]", &s.inode)
	}
	return s, err
}

// exists says whether anything keeps the namespace, if only a socket. It opens it by
// its handle (Linux 6.18, include/uapi/linux/nsfs.h).
func (s space) exists() (bool, error) {
	const root, kind = -10003, 0xf1 // FD_NSFS_ROOT, FILEID_NSFS
	id := binary.NativeEndian.AppendUint64(nil, s.cookie)
	id = binary.NativeEndian.AppendUint32(id, unix.CLONE_NEWNET)
	id = binary.NativeEndian.AppendUint32(id, s.inode)
	fd, err := unix.OpenByHandleAt(root, unix.NewFileHandle(kind, id), unix.O_RDONLY|unix.O_CLOEXEC)
	if errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil, err
}

// spaces are those in which a test's calls have run.
type spaces struct {
	mu     sync.Mutex
	all    []space
	before int // namespaces of the machine, for kernels that find none by a handle
}

func newSpaces(t *testing.T) *spaces { return &spaces{before: namespaces(t)} }

// add notes that of a call whose tool has said "space" first.
func (s *spaces) add(t *testing.T, r *api.Result) {
	t.Helper()
	var of space
	if _, err := fmt.Sscanf(said(r)[0], "space %d %d", &of.cookie, &of.inode); err != nil {
		t.Errorf("the tool has said %q: %v", said(r), err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, of)
}

// left counts those that something still keeps.
func (s *spaces) left(t *testing.T) (n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	own, err := ownSpace()
	if err != nil {
		t.Fatal(err)
	}
	if found, err := own.exists(); err != nil || !found {
		return max(namespaces(t)-s.before, 0)
	}
	for _, one := range s.all {
		found, err := one.exists()
		if err != nil {
			t.Fatal(err)
		}
		if found {
			n++
		}
	}
	return n
}

// namespaces counts the kernel's network namespaces by their slabs: there is one
// struct net for each. A slab that a processor has in hand counts as full, for as long as
// nothing else happens, unless the VM's kernel is told to let go of such ones.
func namespaces(t *testing.T) int {
	t.Helper()
	if os.Getenv("TOOLHOST_VM") != "" {
		if err := os.WriteFile("/sys/kernel/slab/net_namespace/shrink", []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	slabs, err := os.ReadFile("/proc/slabinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(slabs)) {
		var n int
		if _, err := fmt.Sscanf(line, "net_namespace %d", &n); err == nil {
			return n
		}
	}
	t.Fatal("/proc/slabinfo has no net_namespace")
	return 0
}
