package plugintest_test

import (
	"context"
	"testing"

	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/plugin/plugintest"
)

type Input struct {
	Name string `json:"name" jsonschema:"who to greet"`
}

type Greeting struct {
	Length int `json:"length"`
}

func newTool() plugin.Registered {
	return plugin.NewTool(plugin.Tool{Name: "greet", ReadOnly: true}, greet)
}

func greet(_ context.Context, in Input, out *plugin.Output) (Greeting, error) {
	text := "Hello, " + in.Name + "!"
	return Greeting{Length: len(text)}, out.Text(text)
}

func TestGreet(t *testing.T) {
	result := plugintest.Call(t, newTool(), Input{Name: "you"})
	if got := result.Text(); got != "Hello, you!" {
		t.Errorf("text %q", got)
	}
	if got := plugintest.Value[Greeting](t, result); got.Length != 11 {
		t.Errorf("result %+v", got)
	}
}

func TestGreetWantsAName(t *testing.T) {
	result := plugintest.Call(t, newTool(), `{}`)
	if result.OK() || result.Error.Kind != plugintest.KindInvalidArguments {
		t.Errorf("error %v", result.Error)
	}
}

func Example() {}
