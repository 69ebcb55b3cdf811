package turn

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/budget"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/supervisor"
)

type echoed struct {
	ID string `json:"id"`
}

// echoBytes is what echo writes on each of its ways.
const echoBytes = 64 << 10

// echo writes its id, and nothing else, on all ways that there are.
func echo(_ context.Context, in echoed, out *plugin.Output) (echoed, error) {
	whole := strings.Repeat(in.ID+" ", echoBytes/len(in.ID))
	fmt.Print(whole)
	fmt.Fprint(os.Stderr, whole)
	for chunk := range 4 {
		if err := out.Text(whole[chunk*len(whole)/4 : (chunk+1)*len(whole)/4]); err != nil {
			return in, err
		}
	}
	return in, nil
}

// Many calls of one turn, as many at once as it allows, with a real supervisor:
// each result has its own call's output and nothing of another's, and what the
// turn itself holds does not grow with them.
func TestManySupervisedCalls(t *testing.T) {
	calls, most := 200, 8
	if testing.Short() {
		calls = 64
	}
	if os.Getenv("TOOLHOST_SOAK_RUNS") != "" {
		calls = 1000
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, start, err := openHost(t, supervisor.Config{
		RuntimeDir: t.TempDir(), Admission: supervisor.Admission{Running: most, Wait: 2 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	m := New(Config{
		Start: start, Parallel: most, NoStatus: true,
		Tool: func(name string) (Tool, bool) {
			return Tool{Name: name, Request: supervisor.Request{
				Tool:     supervisor.Tool{Path: self, Name: "echo"},
				Timeouts: []budget.Ask{{Layer: budget.LayerGlobal, Timeout: 2 * time.Minute}},
			}}, true
		},
	})
	turn, err := m.Begin(Spec{Budget: unlimited})
	if err != nil {
		t.Fatal(err)
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	defer turn.End()
	looking.Go(func() { crossedEvents(t, turn) })
	const batch = 200
	for first := 0; first < calls; first += batch {
		runEchoes(t, turn, first, min(first+batch, calls))
	}
	limit := uint64(3 * maxKeptBytes)
	wait.Until(t, "no more memory in use than a turn keeps", func() bool { return heap() <= limit })
}

func runEchoes(t *testing.T, turn *Turn, first, end int) {
	t.Helper()
	var batch []Call
	for i := first; i < end; i++ {
		batch = append(batch, Call{ID: fmt.Sprintf("call%04d", i), Tool: "echo", Arguments: fmt.Appendf(nil, `{"id":"call%04d"}`, i)})
	}
	results, err := turn.Run(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		id := batch[i].ID
		if r.CallID != id || !r.OK() {
			t.Fatalf("result of %s: call %s, %s, %s", id, r.CallID, r.Status, r.Message)
		}
		want := echoBytes / len(id) * (len(id) + 1)
		for way, text := range map[string]string{"content": r.Text(), "stdout": r.Output.Stdout.Head, "stderr": r.Output.Stderr.Head} {
			if len(text) != want || strings.Trim(strings.ReplaceAll(text, id+" ", ""), " ") != "" {
				t.Errorf("%s of %s has %d bytes, want %d of its own: %.60q", way, id, len(text), want, text)
			}
		}
		if string(r.Structured) != `{"id":"`+id+`"}` {
			t.Errorf("%s has the result %s", id, r.Structured)
		}
	}
}

// crossedEvents looks at what is shown while calls run.
func crossedEvents(t *testing.T, turn *Turn) {
	for r := range turn.Events(context.Background(), 0) {
		c := r.Event.Content
		if c == nil || len(c.Text) < 32 {
			continue
		}
		for _, word := range strings.Fields(c.Text[16 : len(c.Text)-16]) {
			if len(word) == len("call0000") && word != r.Event.CallID {
				t.Errorf("the output of %s has %q", r.Event.CallID, word)
				return
			}
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A model reads of a tool by the name that it has called, whatever its binary calls it.
func TestMessagesHaveTheNameThatTheModelUses(t *testing.T) {
	var names []string
	m := New(Config{
		Tool: func(string) (Tool, bool) {
			own := supervisor.Request{Tool: supervisor.Tool{Name: "echo"}}
			return Tool{Name: "say", Request: own}, true
		},
		Start: func(_ context.Context, r supervisor.Request) Running {
			names = append(names, r.Name)
			return over{supervisor.Verdict{Tool: r.Name}.Result()}
		},
	})
	defer m.Close()
	turn, err := m.Begin(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer turn.End()
	if _, err := turn.Run(t.Context(), []Call{{ID: "1", Tool: "say"}}); err != nil {
		t.Fatal(err)
	}
	if len(names) != 1 || names[0] != "say" {
		t.Errorf("names %q", names)
	}
}
