package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Options configure a Client. Either Socket or URL must be set.
type Options struct {
	// Socket is the path of the daemon's unix socket.
	Socket string
	// URL is the daemon's address on TCP, such as http://127.0.0.1:7070. Token is the
	// output of toolhost token create, or the content of the daemon's token file. A URL
	// without https must be of loopback, because a token must not be sent over a network
	// unencrypted.
	URL, Token string
	// TLS is used for an https URL; nil means the system's configuration.
	TLS *tls.Config
}

// Client talks to one daemon.
type Client struct {
	base, token string
	http        *http.Client
}

// connectTimeout bounds the wait for a daemon that does not accept connections.
// Responses have no timeout: a batch may take long, and ctx ends it.
const connectTimeout = 10 * time.Second

// New returns a Client. It does not connect.
func New(o Options) (*Client, error) {
	dialer := &net.Dialer{Timeout: connectTimeout}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSClientConfig: o.TLS, TLSHandshakeTimeout: connectTimeout}
	c := &Client{base: "http://localhost", token: o.Token, http: &http.Client{
		Transport: transport,
		// A token is for the address that it was given for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	switch {
	case o.Socket == "" && o.URL == "":
		return nil, errors.New("cannot tell where the daemon is: give its unix socket, or its URL")
	case o.Socket != "" && o.URL != "":
		return nil, fmt.Errorf("both the socket %s and the URL %s are given: leave one of them out", o.Socket, o.URL)
	case o.Socket != "":
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", o.Socket)
		}
		return c, nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not an address of a daemon: write it as http://127.0.0.1:PORT", o.URL)
	}
	if o.Token == "" {
		return nil, errors.New("the daemon lets nobody in on TCP without a token: give what toolhost token create has printed, or the content of its token file")
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("%q would send the token unencrypted through a network: write https://", o.URL)
	}
	c.base = u.Scheme + "://" + u.Host
	return c, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// endpoint joins the parts of a path, and escapes them.
func endpoint(parts ...string) string {
	for i, part := range parts {
		if i%2 == 1 {
			parts[i] = url.PathEscape(part)
		}
	}
	return strings.Join(parts, "")
}

// send sends a request, without a body if that is nil, and returns its response. An
// error response is an error.
func (c *Client) send(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("cannot write the request as JSON: %w", err)
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(r)
	if method == http.MethodGet && isLost(err) { // which nothing was begun by; a daemon hangs up on a connection that says nothing
		response, err = c.http.Do(r)
	}
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		return nil, readError(response)
	}
	return response, nil
}

// unreachable explains a failed connection to a user who expects a daemon.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if isLost(err) {
		return fmt.Errorf("the connection to the daemon was lost: %w", err)
	}
	return fmt.Errorf("cannot reach the daemon: %w", err)
}

// isLost reports whether a request reached the daemon but got no response.
func isLost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

const maxErrorBytes = 64 << 10

func readError(response *http.Response) error {
	var failure api.Failure
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	if err == nil {
		err = json.Unmarshal(raw, &failure)
	}
	if err != nil || failure.Error.Code == "" {
		return fmt.Errorf("the answer is not a toolhost daemon's: HTTP status %s", response.Status)
	}
	failure.Error.Status = response.StatusCode
	return &failure.Error
}

// ask is call with a typed response.
func ask[T any](ctx context.Context, c *Client, method, path string, body any) (answer T, err error) {
	err = c.call(ctx, method, path, body, &answer)
	return answer, err
}

// call sends a request and decodes the response into out, unless out is nil.
func (c *Client) call(ctx context.Context, method, path string, body, out any) error {
	response, err := c.send(ctx, method, path, body, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if out == nil {
		_, err := io.Copy(io.Discard, response.Body)
		return err
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("cannot read the daemon's answer: %w", err)
	}
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
	return nil
}
