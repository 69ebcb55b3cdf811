package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/turn/format"
)

const (
	// maxAttempts bounds how often one request is sent, maxPause the wait
	// between two.
	maxAttempts = 4
	maxPause    = 30 * time.Second
	firstPause  = time.Second
	// maxErrorBytes bounds what is read of a refusal.
	maxErrorBytes = 4 << 10
)

// client asks one model.
type client struct {
	api             dialect
	url, key, model string
	tools           json.RawMessage // nil without tools
	http            *http.Client
	// stream bounds the time of the model, as turn.Turn.Stream does.
	stream func(context.Context) (ctx context.Context, end func(), err error)
	text   func(string) // gets the model's words
	log    func(format string, args ...any)
}

func (o *options) client(provider format.Provider, offers []offer) (*client, error) {
	api := dialects[o.api]
	base := strings.TrimRight(cmp.Or(o.baseURL, api.defaultURL()), "/")
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--base-url %q is not a URL of http or https", base)
	}
	c := &client{
		api: api, url: base + api.path(), key: os.Getenv(api.keyVariable()), model: o.model,
		http: &http.Client{CheckRedirect: stay},
		text: func(s string) { fmt.Print(printable(s)) },
		log:  func(format string, args ...any) { fmt.Fprintf(os.Stderr, "agent: "+format+"\n", args...) },
	}
	if c.key == "" && o.baseURL == "" {
		return nil, fmt.Errorf("%s is not set: set it to your key, or name an endpoint that needs none with --base-url", api.keyVariable())
	}
	if len(offers) == 0 {
		return c, nil
	}
	var tools []format.Tool
	for _, o := range offers {
		tools = append(tools, o.shown)
	}
	var err error
	c.tools, err = provider.Tools(tools)
	return c, err
}

// stay follows no redirect: it could take the key to another host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// ask sends the history and gives the model's response, whole. It tries again
// where the server was busy, but not once words have come: nothing is said
// twice.
func (c *client) ask(ctx context.Context, history []json.RawMessage) (json.RawMessage, error) {
	body, err := json.Marshal(c.api.body(c.model, c.tools, history))
	if err != nil {
		return nil, fmt.Errorf("bug: cannot encode the request: %w", err)
	}
	for attempt := 1; ; attempt++ {
		response, err := c.once(ctx, body)
		busy, again := errors.AsType[busyError](err)
		if !again {
			return response, err
		}
		wait := busy.pause(attempt)
		if attempt == maxAttempts || wait > maxPause {
			return nil, err
		}
		c.log("%s; trying again in %s", printable(err.Error()), wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// once sends the request once and reads the stream that answers it.
func (c *client) once(ctx context.Context, body []byte) (json.RawMessage, error) {
	ctx, end, err := c.stream(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	response, err := c.send(ctx, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if err := refusal(response); err != nil {
		return nil, err
	}
	said := false
	r := c.api.newReply(func(s string) { said = said || s != ""; c.text(s) })
	err = gather(response.Body, r)
	if said {
		c.text("\n")
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	return r.whole()
}

func (c *client) send(ctx context.Context, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot make the request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	if c.key != "" {
		c.api.authorize(request.Header, c.key)
	}
	response, err := c.http.Do(request)
	switch {
	case err == nil:
		return response, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, busyError{message: fmt.Sprintf("cannot reach the model: %v", err)}
}

// busyError says that the same request may succeed later.
type busyError struct {
	message string
	after   *time.Duration // what the server asks for; nil if it doesn't say
}

func (e busyError) Error() string { return e.message }

// pause is what the server asks for, else longer with each attempt.
func (e busyError) pause(attempt int) time.Duration {
	if e.after != nil {
		return *e.after
	}
	return firstPause << (attempt - 1)
}

// busyStatuses are worth another attempt; 529 is Anthropic's "overloaded".
var busyStatuses = []int{408, 429, 500, 502, 503, 504, 529}

// refusal is the error that a response is, if it is not a stream.
func refusal(r *http.Response) error {
	if r.StatusCode == http.StatusOK {
		return checkStream(r.Header)
	}
	raw, _ := io.ReadAll(io.LimitReader(r.Body, maxErrorBytes))
	message := fmt.Sprintf("the server refuses with status %d: %s", r.StatusCode, explanation(raw))
	if !slices.Contains(busyStatuses, r.StatusCode) {
		return errors.New(message)
	}
	return busyError{message: message, after: retryAfter(r.Header.Get("Retry-After"), time.Now())}
}

// explanation is the message in the body of an error, or all of that body.
func explanation(raw []byte) string {
	var body struct{ Error apiError }
	if json.Unmarshal(raw, &body) == nil && body.Error.Message != "" {
		return body.Error.Message
	}
	return cmp.Or(strings.TrimSpace(string(raw)), "it does not say why")
}

// retryAfter reads the header: seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(header string, now time.Time) *time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return new(time.Duration(seconds) * time.Second)
	}
	if at, err := http.ParseTime(header); err == nil {
		return new(max(at.Sub(now), 0))
	}
	return nil
}

// apiError is the error object of all three APIs.
type apiError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (e apiError) Error() string {
	return "the model's server reports an error: " + cmp.Or(e.Message, e.Type, "it does not say which")
}
