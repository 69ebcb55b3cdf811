package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/serve/daemon"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/config"
)

const socketVariable = "TOOLHOST_SOCKET"

// remoteFlags say which daemon a command talks to.
type remoteFlags struct{ socket, config, url, tokenFile, ca string }

func (f *remoteFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.socket, "socket", "", "talk to the daemon at this `PATH` (default $"+socketVariable+", else that of the configuration)")
	cmd.Flags().StringVar(&f.config, "config", "", "read this toolhost.yaml (see toolhost config)")
	cmd.Flags().StringVar(&f.url, "url", "", "talk to the daemon at this `URL`, with the token of --token-file, instead of its socket (default $"+urlVariable+")")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token for --url (default $"+tokenVariable+" is the token)")
	cmd.Flags().StringVar(&f.ca, "ca", "", "trust the certificate authorities in this PEM `FILE` (default the system's)")
}

// named is the daemon that flags or environment name, if they do. Flags count more, that
// of a configuration among them, and a socket in the environment more than a URL there.
func (f *remoteFlags) named() (socket, url string) {
	if f.socket != "" || f.url != "" || f.config != "" {
		return f.socket, f.url
	}
	if socket = os.Getenv(socketVariable); socket != "" {
		return socket, ""
	}
	return "", os.Getenv(urlVariable)
}

// configured is the socket of the configuration. It is only read where nothing else says
// it: a mistake there is not to be in the way of an abort.
func (f *remoteFlags) configured() (string, error) {
	loaded, err := loadFor(config.Options{Path: f.config}, "--socket", "socket")
	if err != nil {
		return "", err
	}
	path, err := daemon.SocketPath(loaded.Daemon)
	if err != nil {
		return "", exit.With(exit.Usage, err)
	}
	return path, nil
}

// remote is a daemon.
type remote struct {
	*client.Client
	socket, url string // one of them
}

// dial connects to nothing yet.
func (f *remoteFlags) dial() (*remote, error) {
	options, err := f.options()
	if err != nil {
		return nil, err
	}
	c, err := client.New(options)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return &remote{c, options.Socket, options.URL}, nil
}

// ask does one thing with the daemon.
func (f *remoteFlags) ask(do func(*remote) error) error {
	r, err := f.dial()
	if err != nil {
		return err
	}
	defer r.Close()
	return r.failure(do(r))
}

// daemonCommand is a command that asks the daemon which its flags name.
func daemonCommand(cmd *cobra.Command, do func(cmd *cobra.Command, daemon *remote, args []string) error) *cobra.Command {
	var flags remoteFlags
	flags.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return flags.ask(func(daemon *remote) error { return do(cmd, daemon, args) })
	}
	return cmd
}

// failure gives an error of the daemon's, or of the way to it, its exit code.
func (r *remote) failure(err error) error {
	if err == nil {
		return nil
	}
	if _, own := errors.AsType[*exit.Error](err); own {
		return err
	}
	refused, ok := errors.AsType[*api.Error](err)
	switch {
	case !ok:
		return hostError(r.unreachable(err))
	case refused.Status == http.StatusNotFound, refused.Status == http.StatusConflict:
		return exit.With(exit.Failed, err)
	case refused.Status == http.StatusBadRequest, refused.Status == http.StatusRequestEntityTooLarge:
		return exit.With(exit.Usage, err)
	}
	return hostError(err)
}

// unreachable says what to do where there is no daemon.
func (r *remote) unreachable(err error) error {
	path := terminal.OneLine(r.socket)
	switch {
	case r.url != "" && !errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: its URL is %s", err, terminal.OneLine(r.url))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no daemon at %s: start one with toolhost serve, or name another socket with --socket or $%s", path, socketVariable)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("you may not connect to the daemon at %s: ask its operator to allow it (socket: group and mode)", path)
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%w: its socket is %s; see its log", err, path)
}
