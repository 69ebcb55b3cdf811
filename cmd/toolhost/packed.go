package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/supervisor"
)

// unpack makes a request for the plugin in a pack, whose copy is kept until the
// app is closed.
func (k *app) unpack(r supervisor.Request) (supervisor.Request, error) {
	outliveReader()
	r, err := k.packs.Request(r)
	if err != nil {
		return r, exit.With(exit.Usage, err)
	}
	return r, nil
}

// outliveReader makes writing to a pipe that nobody reads any more an error of the
// write: copies of packs are still to be removed, and a daemon goes on. The signal is not ignored,
// since children would inherit that.
func outliveReader() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
