package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolhost/toolhost/client"
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/terminal"
)

// Where a daemon is that is reached by TCP, and the token for it. The token is in no
// argument, which others could see.
const (
	urlVariable   = "TOOLHOST_URL"
	tokenVariable = "TOOLHOST_TOKEN"
)

// options say where the daemon is, and how it is reached.
func (f *remoteFlags) options() (o client.Options, err error) {
	o.Socket, o.URL = f.named()
	switch {
	case o.URL != "" && o.Socket != "":
		return o, exit.Usagef("give either --url or --socket, not both")
	case o.URL == "" && (f.ca != "" || f.tokenFile != ""):
		return o, exit.Usagef("--ca and --token-file go with --url")
	case o.Socket != "":
		return o, nil
	case o.URL == "":
		o.Socket, err = f.configured()
		return o, err
	}
	if o.Token, err = f.token(); err == nil {
		o.TLS, err = f.trust()
	}
	return o, err
}

const maxTokenBytes = 4 << 10

func (f *remoteFlags) token() (string, error) {
	if f.tokenFile == "" {
		return os.Getenv(tokenVariable), nil
	}
	file, err := os.Open(f.tokenFile)
	if err != nil {
		return "", exit.With(exit.Usage, fmt.Errorf("cannot read the token: %w", err))
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxTokenBytes+1))
	token := strings.TrimSpace(string(raw))
	if err == nil && (token == "" || len(raw) > maxTokenBytes || strings.ContainsAny(token, "\r\n")) {
		err = errors.New("it must hold one line")
	}
	if err != nil {
		return "", exit.With(exit.Usage, fmt.Errorf("cannot use the token of %s: %w", terminal.OneLine(f.tokenFile), err))
	}
	return token, nil
}

func (f *remoteFlags) trust() (*tls.Config, error) {
	if f.ca == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot read the certificates of --ca: %w", err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, exit.Usagef("--ca %s has no certificate in PEM", terminal.OneLine(f.ca))
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
