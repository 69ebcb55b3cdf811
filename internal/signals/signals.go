// Package signals names signals as signal(7) spells them, for results and exit
// codes, and says which ones a command catches.
package signals

import (
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Name is a signal's name, such as SIGTERM; "signal 34" of a real-time one.
func Name(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

// Number is the inverse of Name; 0 if no signal has that name.
func Number(name string) syscall.Signal {
	if number, ok := strings.CutPrefix(name, "signal "); ok {
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= 64 {
			return syscall.Signal(n)
		}
	}
	return unix.SignalNum(name)
}

// NotIgnored are those signals that were not ignored when this process was started, as with
// nohup(1) or in the background of a script: those are not for it, and catching them would
// undo that. Go knows it of SIGHUP and SIGINT alone.
func NotIgnored(list ...os.Signal) []os.Signal { return slices.DeleteFunc(list, signal.Ignored) }

// OutliveReader makes writing to a pipe that nobody reads any more an error of the
// write: cgroups, folders and copies of packs are still to be removed, and a daemon goes on.
// The signal is not ignored, since children would inherit that.
func OutliveReader() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
