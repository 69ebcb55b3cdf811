package terminal

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// IsTerminal says whether the file is one.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// inBackground says whether this process is not in the foreground of its
// controlling terminal: reading from it would then stop it (SIGTTIN). See
// proc_pid_stat(5): the fields after the name are state, ppid, pgrp, session,
// tty_nr, tpgid.
func inBackground() bool {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(fields) > 5 && fields[5] != "-1" && fields[2] != fields[5]
}
