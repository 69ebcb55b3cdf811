package main

import (
	"os"
	"syscall"
)

// ignored are the signals that someone might try to end the tool with. SIGKILL
// and SIGSTOP cannot be ignored, and those that mean a fault of the program
// itself are left alone.
var ignored = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTERM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
	syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGVTALRM, syscall.SIGIO,
}
