package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// workQueue dispatches calls as a work queue of JetStream does: a message for each, given
// to a worker, and to another one if it is not acknowledged in time.
type workQueue struct {
	t     testing.TB
	conn  *nats.Conn
	queue jetstream.Consumer
	files [2]*os.File // of starts and notes
	mu    sync.Mutex
	lives map[string]int // by call, how often a worker took it
}

func newWorkQueue(t testing.TB) *workQueue {
	t.Helper()
	dir := t.TempDir()
	q := &workQueue{t: t, conn: dialPlain(t, plainServer(t, &server.Options{JetStream: true, StoreDir: dir})), lives: map[string]int{}}
	js, err := jetstream.New(q.conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "calls", Subjects: []string{"calls"}, Retention: jetstream.WorkQueuePolicy})
	if err != nil {
		t.Fatal(err)
	}
	q.queue, err = stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, AckWait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"starts", "notes"} {
		if q.files[i], err = os.Create(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = q.files[i].Close() })
	}
	return q
}

// work takes calls until the server ends. The worker is killed with each call that it is
// the first to take, once that has started, and lives again.
func (q *workQueue) work() {
	for {
		m, err := q.queue.Next(jetstream.FetchMaxWait(wait.Bound))
		if err != nil {
			return
		}
		id := string(m.Data())
		_, _ = fmt.Fprintf(q.files[0], "%s %d\n", id, time.Now().UnixNano())
		q.mu.Lock()
		q.lives[id]++
		first := q.lives[id] == 1
		q.mu.Unlock()
		if !first {
			_ = q.conn.Publish("done."+id, nil)
			_ = m.Ack()
		}
	}
}

// A work queue does not keep the promise of a fleet: both judges say so.
func TestAWorkQueueFailsTheJudges(t *testing.T) {
	t.Parallel()
	q := newWorkQueue(t)
	go q.work()
	caller := &soakCaller{history: q.files[1]}
	for i := range 5 {
		id := fmt.Sprintf("queued-%d", i)
		done, err := q.conn.SubscribeSync("done." + id)
		if err != nil {
			t.Fatal(err)
		}
		caller.note(note{Call: id})
		if err := q.conn.Publish("calls", []byte(id)); err != nil {
			t.Fatal(err)
		}
		if _, err := done.NextMsgWithContext(wait.Context(t)); err != nil {
			t.Fatal(err)
		}
		caller.note(note{Call: id, Status: api.StatusOK, Output: wholeOutput})
	}
	calls := histories(t, q.files[1].Name(), q.files[0].Name())
	if judged, unexplained := judge(calls), linearizable(calls); len(judged) < 5 || len(unexplained) != 5 {
		t.Errorf("one judge finds %q, the other %q", judged, unexplained)
	}
}
