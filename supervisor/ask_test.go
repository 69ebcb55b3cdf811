package supervisor_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// A question reaches its asker, and the answer the tool. That the call's own time
// stands still meanwhile, TestOwner shows.
func TestAQuestionIsAnswered(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	r := request("ask", `{}`)
	asked := make(chan supervisor.Question, 1)
	r.Ask = func(_ context.Context, q supervisor.Question) supervisor.Answer {
		asked <- q
		return supervisor.Answer{Value: json.RawMessage("true")}
	}
	wantStatus(t, call(t, host, r), api.StatusOK)
	if q := <-asked; q.Prompt != "really?" {
		t.Errorf("question %+v", q)
	}
}

func TestADeniedQuestionIsTheToolsToHandle(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for _, reason := range []string{"user", "timeout"} {
		r := request("ask", `{}`)
		r.Ask = func(context.Context, supervisor.Question) supervisor.Answer { return supervisor.Answer{Denied: reason} }
		wantStatus(t, call(t, host, r), api.StatusToolError)
	}
}

// An answer that no message can hold ends the wait for it all the same.
func TestAnAnswerThatCannotBePassedOnIsADenial(t *testing.T) {
	host := newHost(t, supervisor.Config{})
	for _, answer := range []supervisor.Answer{{}, {Value: json.RawMessage("tru")}, {Denied: "us\xffer"}} {
		r := request("ask", `{}`)
		r.Ask = func(context.Context, supervisor.Question) supervisor.Answer { return answer }
		result := call(t, host, r)
		wantStatus(t, result, api.StatusToolError)
		if !strings.HasPrefix(result.ToolError.Message, "denied: ") || len(result.Warnings) > 0 == (answer.Denied != "") {
			t.Errorf("%+v: %q, warnings %q", answer, result.ToolError.Message, result.Warnings)
		}
	}
}
