package supervisor_test

import (
	"context"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// A call that is prepared runs as it was asked for, with what is its own alone.
func TestAPreparedCall(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("ask", `{}`)
	p, err := host.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if p.Timeout().Timeout <= 0 || p.Grace() <= 0 {
		t.Errorf("timeout %v, grace %s", p.Timeout(), p.Grace())
	}
	events := make(chan api.Event, 100)
	asked := false
	got := p.Start(t.Context(), supervisor.Own{Events: events, Ask: func(context.Context, supervisor.Question) supervisor.Answer {
		asked = true
		return supervisor.Answer{Denied: api.OutcomeFailed}
	}}).Result()
	if got.Status == api.StatusStartFailed || !asked || len(events) == 0 {
		t.Errorf("%s; asked %v, %d events", got.Message, asked, len(events))
	}
}

// One that is refused cannot be prepared, but for its arguments; each has its result.
func TestAPreparedRefusal(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("echo", `{}`)
	r.Tool.Path = "/nosuch"
	p, err := host.Prepare(t.Context(), r)
	if err == nil {
		t.Error("a tool that is not there is prepared")
	}
	if got, want := p.Start(t.Context(), supervisor.Own{}).Result(), host.Call(t.Context(), r); got.Status != want.Status || got.Message != want.Message {
		t.Errorf("%s, want %s", got.Message, want.Message)
	}
	p, err = host.Prepare(t.Context(), request("echo", `{"unknown":7}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Start(t.Context(), supervisor.Own{}).Result(); got.Status != api.StatusInvalidArgs {
		t.Errorf("%s %s", got.Status, got.Message)
	}
	p, err = host.Prepare(t.Context(), request("echo", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	p.Close() // one that is given up leaves nothing that Close would wait for
	if err := host.Close(); err != nil {
		t.Error(err)
	}
}
