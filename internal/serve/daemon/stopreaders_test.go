package daemon

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// A daemon stops in spite of watchers, and of clients that have stopped to read
// in the middle of much output; those that read are told of all to the end.
func TestStopWithReaders(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	w := newWorld(t, "stop: {wait: 100ms}\n")
	d := w.daemon()
	id, paused := w.begin(), w.begin()
	text := strings.Repeat("0123456789abcdef", 1<<10)
	const calls = 4
	for n := range calls {
		w.mustRun(id, "work", workArgs{Text: text + fmt.Sprint(n), Repeat: 300})
	}
	batch := w.neverRead(paused)
	defer batch.Close()
	body := fmt.Sprintf(`{"calls":[{"id":"1","tool":"work","arguments":%s}]}`, arguments(t, workArgs{Text: text, Repeat: 1000}))
	streamed := w.dial(fmt.Sprintf("POST /api/turns/%s/calls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", paused, len(body), body))
	defer streamed.Close()
	if _, err := io.ReadFull(streamed, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		defer w.neverRead(id).Close()
	}
	var watching, seen sync.WaitGroup
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	for range 3 {
		seen.Add(1)
		watching.Go(func() {
			last, finished := api.Record{}, 0
			err := w.client.Watch(ctx, id, 0, func(e api.Record) bool {
				if e.Gap != nil || e.Seq != last.Seq+1 {
					t.Errorf("event %d after %d, gap %+v", e.Seq, last.Seq, e.Gap)
				}
				if last = e; e.Kind == "tool_finished" {
					if finished++; finished == calls { // what is left may take a slow machine longer than a stop
						seen.Done()
					}
				}
				return true
			})
			if err != nil || last.Kind != api.EventTurnEnd {
				t.Errorf("the last is %s: %v", last.Kind, err)
			}
		})
	}
	seen.Wait()
	began := time.Now()
	d.signal(syscall.SIGTERM)
	if code := d.code(); code != 0 {
		t.Errorf("exit status %d: %s", code, d.log.text())
	}
	t.Logf("stopped after %v", time.Since(began))
	watching.Wait()
}
