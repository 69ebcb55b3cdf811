// Package pty gives tests a terminal, and a person who reads and types there.
package pty

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// PTY is a pseudo-terminal (pty(7)).
type PTY struct {
	master, slave *os.File

	mu     sync.Mutex
	screen bytes.Buffer
	read   chan struct{} // closed when there is nothing more to be read
}

// New opens a terminal of 100 by 30 characters.
func New(t testing.TB) *PTY {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("cannot open a pseudo-terminal: %v", err)
	}
	p := &PTY{master: master, read: make(chan struct{})}
	var slave string
	p.control(t, master, func(fd int) error {
		n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		slave = fmt.Sprintf("/dev/pts/%d", n)
		return err
	})
	p.control(t, master, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0) })
	if p.slave, err = os.OpenFile(slave, os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatalf("cannot open %s: %v", slave, err)
	}
	p.Resize(t, 100, 30)
	go p.watch()
	t.Cleanup(func() {
		_ = p.slave.Close()
		_ = p.master.Close()
		<-p.read
	})
	return p
}

func (p *PTY) control(t testing.TB, f *os.File, use func(fd int) error) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if useErr := use(int(fd)); useErr != nil {
				t.Errorf("cannot control %s: %v", f.Name(), useErr)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *PTY) watch() {
	defer close(p.read)
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.screen.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Slave is the program's side.
func (p *PTY) Slave() *os.File { return p.slave }

// Resize changes the terminal's size.
func (p *PTY) Resize(t testing.TB, columns, rows int) {
	t.Helper()
	p.control(t, p.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)})
	})
}

// Echoes says whether the terminal shows what is typed.
func (p *PTY) Echoes(t testing.TB) (on bool) {
	t.Helper()
	p.control(t, p.slave, func(fd int) error {
		state, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			on = state.Lflag&unix.ECHO != 0
		}
		return err
	})
	return on
}

// Screen is all that was written to the terminal so far.
func (p *PTY) Screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// Expect waits until the terminal has shown text n times.
func (p *PTY) Expect(t testing.TB, text string, n int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the terminal has shown\n%s", p.Screen())
		}
	}()
	wait.Until(t, fmt.Sprintf("the terminal to show %q %d times", text, n), func() bool { return strings.Count(p.Screen(), text) >= n })
}

// Type types.
func (p *PTY) Type(t testing.TB, keys string) {
	t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// Attach makes the terminal the controlling one of a command, and its stdin,
// stdout and stderr unless they are set.
func (p *PTY) Attach(cmd *exec.Cmd) {
	if cmd.Stdin == nil {
		cmd.Stdin = p.slave
	}
	if cmd.Stdout == nil {
		cmd.Stdout = p.slave
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.slave
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, p.slave)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2 + len(cmd.ExtraFiles)}
}
