package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/plugin/handshake"
)

// maxHandshakeBytes bounds the handshake line; a socket path has 108 bytes.
const maxHandshakeBytes = 4 << 10

// Environment is what go-plugin's own host sets for a plugin. The ports are its
// defaults, which a plugin needs where there are no unix sockets.
func Environment(socketDir string) []string {
	return []string{
		handshake.CookieKey + "=" + handshake.CookieValue,
		"PLUGIN_MIN_PORT=10000", "PLUGIN_MAX_PORT=25000",
		"PLUGIN_PROTOCOL_VERSIONS=" + strconv.Itoa(handshake.Version),
		handshake.SocketDir + "=" + socketDir,
	}
}

// output is a child's standard output: one line for the host, and what follows
// for Options.Stdout. One goroutine reads it.
type output struct {
	socket string // of the handshake; read it after greeted
	err    error
	// greeted is closed when the first line has come, or none will; copied when all
	// has been read.
	greeted, copied chan struct{}
}

func read(from io.Reader, socketDir string, rest io.Writer) *output {
	o := &output{greeted: make(chan struct{}), copied: make(chan struct{})}
	go func() {
		defer close(o.copied)
		stdout := bufio.NewReaderSize(from, maxHandshakeBytes)
		line, err := stdout.ReadSlice('\n')
		if o.socket, o.err = checkHandshake(string(line), err, socketDir); o.err != nil {
			_, _ = rest.Write(bytes.Clone(line))
		}
		close(o.greeted)
		_, _ = io.Copy(rest, stdout)
	}()
	return o
}

// handshake waits for the name of the tool's socket.
func (o *output) handshake(ctx context.Context) (string, error) {
	select {
	case <-o.greeted:
		return o.socket, o.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// printFirst is for what prints something else first, and for what is not a tool.
const printFirst = "run it with toolhost exec, or have it print nothing before the handshake"

// checkHandshake returns the name of the socket that the line
// `1|<version>|unix|<socketDir>/<name>|grpc[|...]` gives, or says what is wrong
// with it. What may follow, such as a certificate, is for other hosts.
func checkHandshake(line string, err error, socketDir string) (string, error) {
	refuse := func(reason string) (string, error) {
		return "", &HandshakeError{Reason: reason, Output: excerpt(line)}
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return refuse("not a toolhost tool: its first line is longer than " + strconv.Itoa(maxHandshakeBytes) + " bytes; " + printFirst)
	case err != nil:
		reason := "not a toolhost tool: it ended its output without the go-plugin handshake line; build it with package plugin, or run it with toolhost exec"
		return "", &HandshakeError{Reason: reason, Output: excerpt(line), Ended: true}
	}
	f := strings.Split(strings.TrimRight(line, "\r\n"), "|")
	if len(f) < 5 || f[0] != strconv.Itoa(handshake.CoreVersion) {
		return refuse("not a toolhost tool: its first line is not a go-plugin handshake; " + printFirst)
	}
	if f[1] != strconv.Itoa(handshake.Version) {
		return refuse("the tool speaks protocol version " + strconv.Quote(f[1]) + ", this host speaks " + strconv.Itoa(handshake.Version) + "; rebuild the tool with a matching SDK")
	}
	if f[4] != "grpc" {
		return refuse("the tool speaks " + strconv.Quote(f[4]) + " instead of grpc; build it with package plugin, or have it serve gRPC")
	}
	name := filepath.Base(f[3])
	if f[2] != "unix" || f[3] != filepath.Join(socketDir, name) || name == "." || name == ".." {
		return refuse("the tool listens outside the call's socket folder; have it listen on a unix socket in $" + handshake.SocketDir)
	}
	return name, nil
}

func excerpt(line string) string {
	const limit = 200
	line = strings.ToValidUTF8(strings.TrimSpace(line), "\uFFFD")
	if r := []rune(line); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return line
}
