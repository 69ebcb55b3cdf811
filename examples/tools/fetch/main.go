// Command fetch is a tool that gets a URL over HTTP or HTTPS and streams its
// text, in UTF-8 whatever it is in, as it comes: a call which is cut short
// keeps what had come by then. What is not text comes whole, as a blob.
//
// Bytes, redirects and waiting are bounded. Addresses that are not public, such
// as this machine's, its network's and a cloud's metadata service, are refused
// after the name is resolved, unless the environment has FETCH_PRIVATE=allow.
// It needs a network: toolhost run --net example.com fetch url=https://example.com
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

const (
	defaultBytes = 1 << 20
	maxBytes     = 16 << 20
	// maxBlobBytes keeps a blob within one message to the host.
	maxBlobBytes = 3 << 20
	maxRedirects = 10
)

func main() { plugin.Serve(newTool(os.Getenv("FETCH_PRIVATE") == "allow")) }

func newTool(private bool) plugin.Registered {
	f := &fetcher{client: newClient(private)}
	return plugin.NewTool(plugin.Tool{
		Name:        "fetch",
		Title:       "Fetch a URL",
		Description: "Get a URL over HTTP or HTTPS. Text is shown as it comes, in UTF-8; anything else as a blob.",
		ReadOnly:    true,
		Idempotent:  true,
		Timeout:     time.Minute,
		Wish:        plugin.Wish{Network: true},
	}, f.fetch)
}

// Arguments say what to get.
type Arguments struct {
	URL      string `json:"url" jsonschema:"http or https URL"`
	MaxBytes int64  `json:"max_bytes,omitempty" jsonschema:"stop after so many bytes of the body; default 1048576, at most 16777216"`
}

// Summary describes the response. Bytes are the body's, decompressed, and
// Truncated says that there are more.
type Summary struct {
	URL         string `json:"url"` // behind all redirects
	Status      int    `json:"status"`
	ContentType string `json:"content_type"`
	Charset     string `json:"charset,omitempty"`
	Bytes       int64  `json:"bytes"`
	Redirects   int    `json:"redirects,omitempty"`
	Truncated   bool   `json:"truncated,omitempty"`
}

type fetcher struct{ client *http.Client }

// fetch fails for a status of 400 and more, too; the body, which may say why,
// is shown all the same.
func (f *fetcher) fetch(ctx context.Context, in Arguments, out *plugin.Output) (Summary, error) {
	request, err := in.request(ctx)
	if err != nil {
		return Summary{}, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		return Summary{}, explain(ctx, request.URL, err)
	}
	defer response.Body.Close()
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" {
		return Summary{}, fmt.Errorf("%s is compressed as %q, which was not asked for and is not known here", shown(response.Request.URL), encoding)
	}
	body := &bounded{from: response.Body, left: in.MaxBytes}
	b := newBody(body, response.Header.Get("Content-Type"))
	err = b.show(out, response.ContentLength)
	summary := Summary{
		URL: shown(response.Request.URL), Status: response.StatusCode, ContentType: b.mediaType, Charset: b.charset,
		Bytes: body.read, Truncated: body.truncated, Redirects: redirects(response),
	}
	switch {
	case err != nil:
		return summary, explain(ctx, response.Request.URL, err)
	case response.StatusCode >= http.StatusBadRequest:
		return summary, fmt.Errorf("%s answers %s", shown(response.Request.URL), response.Status)
	}
	return summary, nil
}

// request checks the arguments, so that a mistake is told before any traffic.
func (in *Arguments) request(ctx context.Context) (*http.Request, error) {
	if in.MaxBytes < 0 || in.MaxBytes > maxBytes {
		return nil, fmt.Errorf("max_bytes %d is out of range: give 1 to %d", in.MaxBytes, maxBytes)
	}
	in.MaxBytes = cmp.Or(in.MaxBytes, defaultBytes)
	target, err := url.Parse(in.URL)
	if err != nil {
		return nil, fmt.Errorf("url is not one: %w", err)
	}
	if err := checkURL(target); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "toolhost-fetch/1")
	request.Header.Set("Accept", "text/html, application/json, text/*;q=0.9, */*;q=0.5")
	return request, nil
}

func checkURL(target *url.URL) error {
	switch {
	case target.Scheme != "http" && target.Scheme != "https":
		return fmt.Errorf("url %q is neither http:// nor https://", shown(target))
	case target.Hostname() == "":
		return fmt.Errorf("url %q names no host", shown(target))
	case target.User != nil:
		return fmt.Errorf("url %q holds a user name: leave it out", shown(target))
	}
	return nil
}

// shown is a URL without its password.
func shown(target *url.URL) string { return target.Redacted() }

func redirects(response *http.Response) int {
	n := 0
	for r := response.Request.Response; r != nil; r = r.Request.Response {
		n++
	}
	return n
}

// bounded reads so many bytes and finds out whether there are more.
type bounded struct {
	from      io.Reader
	left      int64
	read      int64
	truncated bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		var more [1]byte
		n, err := io.ReadFull(b.from, more[:])
		b.truncated = b.truncated || n > 0
		if n > 0 {
			err = io.EOF
		}
		return 0, err
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.read += int64(n)
	return n, err
}
