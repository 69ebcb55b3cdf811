package escape

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bait is what the host lays out for the tool to find, one thing for each way of finding it. Where it can be found, the
// facts about it say escaped; so a negative control, without a sandbox, shows that the probes look in the right places.
type Bait struct {
	// Expect knows the host and the bait. The caller adds what it knows of the sandbox, and puts the canary into the
	// environment of the host's processes.
	Expect Expect

	undo []func() error
}

// LayBait makes bait on the host; its files are in dir, which the sandbox must not show. Close takes all of it away.
func LayBait(dir string) (*Bait, error) {
	host, err := Outside()
	if err != nil {
		return nil, err
	}
	b := &Bait{Expect: host}
	b.Expect.Canary = Secret("escape-canary-" + rand.Text())
	if err := errors.Join(b.file(dir), b.sockets(dir), b.systemV(), b.queue()); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lay bait: %w", err), b.Close())
	}
	return b, nil
}

// Close takes the bait away. It is called once.
func (b *Bait) Close() error {
	var errs []error
	for _, undo := range b.undo {
		errs = append(errs, undo())
	}
	return errors.Join(errs...)
}

func (b *Bait) later(undo func() error) { b.undo = append(b.undo, undo) }

func (b *Bait) file(dir string) error {
	path := filepath.Join(dir, "bait-"+rand.Text())
	b.Expect.Absent = append(b.Expect.Absent, path)
	b.later(func() error { return os.Remove(path) })
	return os.WriteFile(path, []byte(b.Expect.Canary), 0o644)
}

// sockets listen and never accept: the backlog answers a connect.
func (b *Bait) sockets(dir string) error {
	b.Expect.Abstract = "escape-bait-" + rand.Text()
	b.Expect.PathSocket = filepath.Join(dir, "bait.sock")
	for _, l := range []struct{ network, address string }{{"unix", "@" + b.Expect.Abstract}, {"unix", b.Expect.PathSocket}, {"tcp4", "127.0.0.1:0"}} {
		listener, err := net.Listen(l.network, l.address)
		if err != nil {
			return err
		}
		b.later(listener.Close)
		if address, ok := listener.Addr().(*net.TCPAddr); ok {
			b.Expect.TCPPort = address.Port
		}
	}
	return os.Chmod(b.Expect.PathSocket, 0o666)
}

// systemV makes one object of each kind. Anybody may open them.
func (b *Bait) systemV() error {
	var random [4]byte
	_, _ = rand.Read(random[:])
	key := uintptr(binary.NativeEndian.Uint32(random[:])>>1 | 1)
	b.Expect.IPCKey = int(key)
	const flags = unix.IPC_CREAT | unix.IPC_EXCL | 0o666
	for _, o := range []struct {
		name        string
		get, remove uintptr
		args        [3]uintptr
		command     int // which argument of remove is the command
	}{
		{"shared memory", unix.SYS_SHMGET, unix.SYS_SHMCTL, [3]uintptr{key, 4096, flags}, 1},
		{"semaphores", unix.SYS_SEMGET, unix.SYS_SEMCTL, [3]uintptr{key, 1, flags}, 2},
		{"message queue", unix.SYS_MSGGET, unix.SYS_MSGCTL, [3]uintptr{key, flags, 0}, 1},
	} {
		id, _, errno := unix.Syscall(o.get, o.args[0], o.args[1], o.args[2])
		if errno != 0 {
			return fmt.Errorf("cannot make %s: %w", o.name, errno)
		}
		b.later(func() error {
			args := [4]uintptr{id}
			args[o.command] = unix.IPC_RMID
			if _, _, errno := unix.Syscall6(o.remove, args[0], args[1], args[2], args[3], 0, 0); errno != 0 {
				return fmt.Errorf("cannot remove %s: %w", o.name, errno)
			}
			return nil
		})
	}
	return nil
}

func (b *Bait) queue() error {
	b.Expect.Queue = "escape-bait-" + rand.Text()
	name, err := unix.BytePtrFromString(b.Expect.Queue)
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o666, 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("cannot make a POSIX message queue: %w", errno)
	}
	b.later(func() error {
		_, _, errno := unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
		if errno != 0 {
			return fmt.Errorf("cannot remove a POSIX message queue: %w", errno)
		}
		return unix.Close(int(fd))
	})
	return nil
}
