package siege

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

// turnClients begin turns and read too slowly, or not at all, or are gone when it
// counts.
var turnClients = []hostileClient{
	{"paused watcher", "reads an event, and no more for some seconds", pausedWatcher},
	{"late watcher", "comes when most of a large turn is no longer in memory", lateWatcher},
	{"batch not read", "a batch's stream that nobody takes", batchNotRead},
	{"batch read late", "a batch's stream that is taken after a pause", batchReadLate},
	{"goes away", "is gone in the middle of a call", goesAway},
	{"stream hoarder", "many streams of one turn, never read", streamHoarder},
	{"turn hoarder", "turns with much output that nobody ends in time", turnHoarder},
	{"aborts", "aborts turns and calls at random moments", aborts},
	{"answers twice", "the second answer to a question", answersTwice},
	{"forgets to answer", "a question, and nobody is there any more", forgets},
}

// events opens a turn's stream of events, which is not read yet.
func (m *mob) events(ctx context.Context, turnID string) (*http.Response, *wire, error) {
	return m.stream(ctx, m.head("GET", "/api/turns/"+turnID+"/events", "Accept: text/event-stream"), "")
}

// batch opens the stream of a batch.
func (m *mob) batch(ctx context.Context, turnID string, calls []api.Call) (*http.Response, *wire, error) {
	body, _ := json.Marshal(api.Batch{Calls: calls})
	head := m.head("POST", "/api/turns/"+turnID+"/calls", asJSON, "Accept: text/event-stream", fmt.Sprintf("Content-Length: %d", len(body)))
	return m.stream(ctx, head, string(body))
}

func (m *mob) stream(ctx context.Context, head, body string) (*http.Response, *wire, error) {
	w, err := m.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err = io.WriteString(w, head+body); err == nil {
		var response *http.Response
		if response, err = http.ReadResponse(w.in, nil); err == nil && response.StatusCode < 300 {
			return response, w, nil
		}
	}
	_ = w.Close()
	return nil, nil, errors.Join(err, errors.New("no stream"))
}

// until reads events up to one whose kind begins so.
func until(body io.Reader, kind string) error {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("no event %s: %w", kind, err)
		}
		if strings.HasPrefix(string(line), "event: "+kind) {
			return nil
		}
	}
}

// mustEnd is for a stream that has to come to its end while there is time. What
// the daemon itself cuts off was not taken in time; one that stays open and
// brings nothing is wrong.
func mustEnd(ctx context.Context, body io.Reader, kind string) error {
	err := until(body, kind)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return wrong("the stream brings nothing more, and no end: " + err.Error())
	}
	return err
}

func pausedWatcher(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(c *client.Client, id string) error {
		response, w, err := m.events(ctx, id)
		if err != nil {
			return err
		}
		defer w.Close()
		due := make(chan struct{})
		go func() {
			_, _ = c.Run(ctx, id, oneCall(anyTool())) // which may wait its turn for longer than this round lasts
			if c.End(ctx, id) == nil {
				if pause(ctx, 5*time.Second); ctx.Err() == nil {
					close(due)
				}
			}
		}()
		if err := until(response.Body, "tool_queued"); err != nil {
			return err
		}
		pause(ctx, time.Duration(1+rand.IntN(4))*time.Second)
		err = mustEnd(ctx, response.Body, "turn_end")
		select {
		case <-due:
			return err
		default: // the turn has not ended, or just now: the stream may still bring it
			if err != nil {
				err = errors.New(err.Error())
			}
			return err
		}
	})
}

func lateWatcher(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(c *client.Client, id string) error {
		if _, err := c.Run(ctx, id, oneCall("large")); err != nil {
			return err
		}
		response, w, err := m.events(ctx, id)
		if err != nil {
			return err
		}
		defer w.Close()
		return mustEnd(ctx, response.Body, "tool_f") // or tool_failed
	})
}

func batchNotRead(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(_ *client.Client, id string) error {
		_, w, err := m.batch(ctx, id, oneCall("large"))
		if err != nil {
			return err
		}
		defer w.Close()
		pause(ctx, 15*time.Second)
		return nil
	})
}

func batchReadLate(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(_ *client.Client, id string) error {
		response, w, err := m.batch(ctx, id, oneCall("large"))
		if err != nil {
			return err
		}
		defer w.Close()
		pause(ctx, 3*time.Second)
		return mustEnd(ctx, response.Body, "results")
	})
}

func goesAway(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(_ *client.Client, id string) error {
		_, w, err := m.batch(ctx, id, oneCall(anyTool()))
		if err != nil {
			return err
		}
		pause(ctx, rand.N(time.Second))
		return w.Close()
	})
}

func streamHoarder(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(c *client.Client, id string) error {
		for range 50 {
			_, w, err := m.events(ctx, id)
			if err != nil {
				return err
			}
			defer w.Close()
		}
		_, err := c.Run(ctx, id, oneCall("large"))
		return err
	})
}

// turnHoarder keeps a dozen turns with all that they have in memory.
func turnHoarder(ctx context.Context, m *mob) error {
	if ctx.Err() != nil {
		return nil
	}
	return m.hoard(ctx, 12)
}

func (m *mob) hoard(ctx context.Context, more int) error {
	if more == 0 {
		return nil
	}
	return m.turn(ctx, headless(), func(c *client.Client, id string) error {
		_, err := c.Run(ctx, id, oneCall("large"))
		return errors.Join(err, m.hoard(ctx, more-1))
	})
}

func aborts(ctx context.Context, m *mob) error {
	return m.turn(ctx, headless(), func(c *client.Client, id string) error {
		done := make(chan error, 1)
		go func() {
			results, err := c.Run(ctx, id, oneCall("deaf"))
			if err == nil && results[0].OK() {
				err = wrong("an aborted call that never ends is ok")
			}
			done <- err
		}()
		pause(ctx, rand.N(time.Second))
		if rand.IntN(2) == 0 {
			_ = c.AbortCall(ctx, id, "1")
		} else {
			_ = c.Abort(ctx, id)
			_ = c.Abort(ctx, id)
		}
		return <-done
	})
}

// asked begins a call that asks, and gives the question to do.
func (m *mob) asked(ctx context.Context, do func(c *client.Client, question string) error) error {
	return m.turn(ctx, api.TurnSpec{TurnID: newID()}, func(c *client.Client, id string) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = c.Run(ctx, id, oneCall("asks"))
		}()
		defer func() { cancel(); <-over }()
		for {
			turn, err := c.Turn(ctx, id)
			if err != nil {
				return err
			}
			if len(turn.PendingInteractions) > 0 {
				return do(c, turn.PendingInteractions[0].ID)
			}
			pause(ctx, 50*time.Millisecond)
		}
	})
}

func answersTwice(ctx context.Context, m *mob) error {
	return m.asked(ctx, func(c *client.Client, question string) error {
		if err := c.Answer(ctx, question, api.Answer{Approve: true}); err != nil {
			return err
		}
		return refusedWith(c.Answer(ctx, question, api.Answer{}), http.StatusNotFound)
	})
}

func forgets(ctx context.Context, m *mob) error {
	return m.asked(ctx, func(*client.Client, string) error { return nil })
}

// oneCall is one with arguments that no other has.
func oneCall(tool string) []api.Call {
	raw, _ := json.Marshal(map[string]string{"name": newID()})
	return []api.Call{{ID: "1", Tool: tool, Arguments: raw}}
}

// anyTool is a hostile one whose call begins.
func anyTool() string { return []string{"deaf", "progress", "floods", "tinyContent"}[rand.IntN(4)] }
