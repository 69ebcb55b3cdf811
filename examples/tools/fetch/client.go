package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// How long each step may take, beside the call's own timeout.
const (
	dialTimeout   = 10 * time.Second
	tlsTimeout    = 10 * time.Second
	headerTimeout = 30 * time.Second
	maxHeader     = 256 << 10
)

// newClient makes a client that keeps no connection and no cookie, and uses no
// proxy: the address that is checked is the one that is spoken to.
func newClient(private bool) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if !private {
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return checkAddress(address, online)
		}
	}
	return &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: tlsTimeout, ResponseHeaderTimeout: headerTimeout,
			MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		},
	}
}

func checkRedirect(request *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return &redirectError{fmt.Sprintf("more than %d redirects, the last to %s", maxRedirects, shown(request.URL))}
	case via[len(via)-1].URL.Scheme == "https" && request.URL.Scheme == "http":
		return &redirectError{fmt.Sprintf("it redirects from https to %s, which is not secured", shown(request.URL))}
	}
	if err := checkURL(request.URL); err != nil {
		return &redirectError{"it redirects: " + err.Error()}
	}
	return nil
}

type redirectError struct{ reason string }

func (e *redirectError) Error() string { return e.reason }

// notPublic are the networks that are somebody's own, see IANA's registries of
// special-purpose addresses. The last ones wrap IPv4 addresses.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
	"::/127", "fc00::/7", "fe80::/9", "ff00::/8", "100::/64", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32",
)

func prefixes(list ...string) (out []netip.Prefix) {
	for _, text := range list {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

type privateError struct{ address netip.Addr }

func (e *privateError) Error() string {
	return fmt.Sprintf("%s is not a public address: set FETCH_PRIVATE=allow in the tool's environment to allow it", e.address)
}

// granted are the addresses that stand for names where a call is granted some. Behind
// them toolhost connects, which judges the names' own addresses.
var granted = netip.MustParsePrefix("198.18.0.0/15")

// checkAddress judges an address that is about to be dialled, which no name can
// change any more.
func checkAddress(address string, online func() bool) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	addr := parsed.Addr().WithZone("").Unmap()
	if granted.Contains(addr) && !online() {
		return nil
	}
	if slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return &privateError{addr}
	}
	return nil
}

// explain says what went wrong in words that help, without what Go's errors
// repeat.
func explain(ctx context.Context, target *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if redirect, ok := errors.AsType[*redirectError](err); ok {
		return fmt.Errorf("%s: %w", shown(target), redirect)
	}
	if private, ok := errors.AsType[*privateError](err); ok {
		return fmt.Errorf("%s: %w", shown(target), private)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if parsed, parseErr := url.Parse(wrapped.URL); parseErr == nil {
			target = parsed // behind a redirect it is another
		}
		err = wrapped.Err
	}
	return fmt.Errorf("cannot get %s: %w%s", shown(target), reason(target, err), offline(err))
}

func reason(target *url.URL, err error) error {
	var timeout net.Error
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("no address of %s: %s", dns.Name, dns.Err)
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("the certificate of %s is not to be trusted: %w", target.Hostname(), certificate.Err)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: connection refused", target.Host)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s takes too long: %w", target.Host, err)
	}
	return err
}

// offline says what to do where the tool has no network but what it was granted.
func offline(err error) string {
	if _, ok := errors.AsType[*net.OpError](err); !ok || online() {
		return ""
	}
	return "; the tool reaches only what it is granted, as by toolhost run --net example.com"
}

// online finds out whether the tool has a network of its own machine's.
func online() bool {
	interfaces, err := net.Interfaces()
	return err != nil || slices.ContainsFunc(interfaces, func(i net.Interface) bool { return i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 })
}
