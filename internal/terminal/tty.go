package terminal

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// IsTerminal says whether the file is one.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Input is f as a command's input. If f is a terminal, it is read only while this
// process is in the foreground: in the background a read waits until that is so
// again, and does not stop the process, which ignores SIGTTIN from then on.
func Input(f *os.File) io.Reader {
	if !IsTerminal(f) {
		return f
	}
	signal.Ignore(syscall.SIGTTIN)
	return input{f}
}

// lookAgain is how often a process in the background looks whether it still is:
// the shell's fg tells only a process that is stopped.
const lookAgain = 100 * time.Millisecond

type input struct{ tty *os.File }

func (i input) Read(p []byte) (int, error) {
	for {
		n, err := i.tty.Read(p)
		if !errors.Is(err, syscall.EIO) || !InBackground() {
			return n, err
		}
		time.Sleep(lookAgain)
	}
}

// InBackground says whether this process is not in the foreground of its
// controlling terminal: reading from it would then stop it (SIGTTIN), and drawing
// there would spoil what others type. The group in the foreground is tcgetpgrp(3)'s,
// as proc_pid_stat(5) has it: the fields after the name are state, ppid, pgrp,
// session, tty_nr, tpgid.
func InBackground() bool {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(fields) > 5 && fields[5] != "-1" && fields[2] != fields[5]
}
