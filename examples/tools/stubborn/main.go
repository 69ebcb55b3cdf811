// Command stubborn is a tool that does all it can not to end, to show that a
// host ends it anyway. It ignores its context, a polite shutdown and every
// signal that can be ignored, and leaves many orphans, each in a session of its
// own and deaf to signals, so that neither a process group nor a parent leads
// to them.
//
// Only SIGKILL ends its processes before their time. Should nobody send it,
// each orphan ends by itself after two minutes at most, and the tool after
// the given seconds.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os/signal"
	"sync"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

const (
	defaultChildren = 50
	maxChildren     = 10_000
	defaultSeconds  = 3600
)

// running are the calls under way.
var running sync.WaitGroup

func main() {
	plugin.Serve(newTool())
	running.Wait() // Serve returns when the host says goodbye
}

func newTool() plugin.Registered {
	return plugin.NewTool(plugin.Tool{
		Name:        "stubborn",
		Title:       "A tool that will not end",
		Description: "Ignores every request to end and leaves orphans, to show that the host kills them all.",
	}, stubborn)
}

// Arguments say how stubborn to be.
type Arguments struct {
	Children  int  `json:"children,omitempty" jsonschema:"how many orphans to leave; default 50"`
	Seconds   int  `json:"seconds,omitempty" jsonschema:"how long to go on; default 3600"`
	HoldPipes bool `json:"hold_pipes,omitempty" jsonschema:"let the orphans keep stdout and stderr open"`
}

// Summary is returned in the end, if nobody kills the tool first.
type Summary struct {
	Started int `json:"started"`
}

// stubborn does not look at its context.
func stubborn(_ context.Context, in Arguments, out *plugin.Output) (Summary, error) {
	if in.Children < 0 || in.Children > maxChildren || in.Seconds < 0 {
		return Summary{}, fmt.Errorf("want 0 to %d children (0 is %d), and no negative seconds", maxChildren, defaultChildren)
	}
	in.Children = cmp.Or(in.Children, defaultChildren)
	in.Seconds = cmp.Or(in.Seconds, defaultSeconds)
	running.Add(1)
	defer running.Done()
	signal.Ignore(ignored...)
	pids, err := orphans(in.Children, in.HoldPipes)
	if err != nil {
		return Summary{}, err
	}
	_ = out.Textf("started %d grandchildren\n", len(pids))
	if len(pids) < in.Children {
		_ = out.Log(fmt.Sprintf("asked for %d: a limit must have stopped the rest", in.Children))
	}
	_ = out.Heartbeat()
	time.Sleep(time.Duration(in.Seconds) * time.Second)
	return Summary{Started: len(pids)}, nil
}
