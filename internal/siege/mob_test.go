package siege

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

// asMob in the environment makes the test binary the mob of the target that it
// names in JSON.
const asMob = "TOOLHOST_SIEGE_MOB"

const asOnly = "TOOLHOST_SIEGE_ONLY"

const (
	// atOnce are as many hostile clients, and as many callers of hostile tools.
	atOnce = 50
	// patience bounds one round of a client, and breath is between two.
	patience, breath = 30 * time.Second, 100 * time.Millisecond
	// maxWrong bounds what is told of what they have found.
	maxWrong = 50
)

// target is where clients find the daemon.
type target struct{ Socket, TCP, Token string }

// mob is everybody who means ill.
type mob struct {
	target
	near, far *client.Client // by the socket, by TCP

	mu   sync.Mutex
	tale tale
}

// tale is what the mob has to tell: rounds and rounds without an answer by
// client, statuses by tool, and what was answered wrongly.
type tale struct {
	Rounds, Unanswered map[string]int
	Statuses           map[string]map[string]int
	Wrong              []string
	Wrongs             int
}

// playMob is hostile until stdin ends.
func playMob() {
	m := &mob{tale: tale{Rounds: map[string]int{}, Unanswered: map[string]int{}, Statuses: map[string]map[string]int{}}}
	_ = json.Unmarshal([]byte(os.Getenv(asMob)), &m.target)
	m.near, _ = client.New(client.Options{Socket: m.Socket})
	m.far, _ = client.New(client.Options{URL: "http://" + m.TCP, Token: m.Token})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, member := range invited() {
		all.Go(func() { m.again(ctx, member) })
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(patience):
	}
	m.mu.Lock()
	_ = json.NewEncoder(os.Stdout).Encode(m.tale)
	os.Exit(0)
}

// invited are 50 hostile clients and 50 callers of hostile tools, in turn; of
// those only the ones that TOOLHOST_SIEGE_ONLY matches, to look at them closer.
func invited() (members []hostileClient) {
	only := regexp.MustCompile(os.Getenv(asOnly))
	for n := range atOnce {
		for _, c := range []hostileClient{hostileClients[n%len(hostileClients)], caller(hostileTools[n%len(hostileTools)])} {
			if only.MatchString(c.name) {
				members = append(members, c)
			}
		}
	}
	return members
}

// again has a client do its worst over and over.
func (m *mob) again(ctx context.Context, c hostileClient) {
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, patience)
		err := c.do(once, m)
		cancel()
		if ctx.Err() == nil { // what the end of it all breaks off is no finding
			m.note(c.name, err)
		}
		pause(ctx, mathrand.N(breath))
	}
}

// wrong is an answer that must not be.
type wrong string

func (w wrong) Error() string { return string(w) }

func (m *mob) note(name string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tale.Rounds[name]++
	found, is := err.(wrong)
	switch {
	case is:
		if m.tale.Wrongs++; m.tale.Wrongs <= maxWrong {
			m.tale.Wrong = append(m.tale.Wrong, name+": "+string(found))
		}
	case err != nil:
		m.tale.Unanswered[name]++
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// either is one of the two ways in.
func (m *mob) either() *client.Client {
	if mathrand.IntN(2) == 0 {
		return m.near
	}
	return m.far
}

// turn begins one for a client, and ends it behind do.
func (m *mob) turn(ctx context.Context, spec api.TurnSpec, do func(c *client.Client, id string) error) error {
	c := m.either()
	begun, err := c.Begin(ctx, spec)
	if err != nil {
		return err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = c.End(after, begun.TurnID)
	}()
	return do(c, begun.TurnID)
}

// wire is a connection on which requests are written by hand.
type wire struct {
	net.Conn
	in *bufio.Reader
}

// dial is on TCP, with a bound for all that follows.
func (m *mob) dial(ctx context.Context) (*wire, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.TCP)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &wire{conn, bufio.NewReader(conn)}, nil
}

// head is a request's, with more headers, a line each.
func (m *mob) head(method, path string, headers ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: " + m.TCP, "Authorization: Bearer " + m.Token}, headers...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

const asJSON = "Content-Type: application/json"

// post sends a body at once and wants one of these statuses.
func (m *mob) post(ctx context.Context, path, body string, statuses ...int) error {
	w, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	go func() { // it may be refused before it is all there
		_, _ = io.WriteString(w, m.head("POST", path, asJSON, fmt.Sprintf("Content-Length: %d", len(body)))+body)
	}()
	return w.answered(statuses...)
}

// answered reads an answer and wants one of these statuses, or one that says
// that the daemon has enough to do.
func (w *wire) answered(statuses ...int) error {
	response, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if !slices.Contains(append(statuses, http.StatusServiceUnavailable), response.StatusCode) {
		return wrong(fmt.Sprintf("status %d, want %d: %.300s", response.StatusCode, statuses, said))
	}
	return err
}

func newID() string { return "mob-" + rand.Text() }

func headless() api.TurnSpec { return api.TurnSpec{TurnID: newID(), Headless: true} }
