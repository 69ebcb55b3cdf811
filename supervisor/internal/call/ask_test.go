package call

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toolhost/toolhost/budget"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// An interaction refuses times that are negative, or that do not end.
func TestWishesForAnswers(t *testing.T) {
	for ms, want := range map[int64]time.Duration{
		math.MinInt64: 0, -1: 0, 0: 0, 5000: 5 * time.Second, math.MaxInt64: budget.Infinite - 1,
	} {
		if got := wished(ms); got != want {
			t.Errorf("%d ms: %v, want %v", ms, got, want)
		}
	}
}

// A tool gets JSON that it can read or a denial, whatever the asker has made.
func TestAnswersThatCannotBePassedOn(t *testing.T) {
	for name, test := range map[string]struct {
		answer              spec.Answer
		value, denied, warn string
	}{
		"json":          {spec.Answer{Value: []byte(` {"a": 1e400} `)}, ` {"a": 1e400} `, "", ""},
		"half a pair":   {spec.Answer{Value: []byte(`"\ud800"`)}, `"\ufffd"`, "", ""},
		"nothing":       {spec.Answer{}, "", "failed", "the JSON ends too early"},
		"no json":       {spec.Answer{Value: []byte(`tru`)}, "", "failed", "not passed on to the tool: "},
		"not UTF-8":     {spec.Answer{Value: []byte("\"\xff\"")}, "", "failed", "not UTF-8"},
		"a key twice":   {spec.Answer{Value: []byte(`{"a":1,"a":2}`)}, "", "failed", "twice"},
		"too large":     {spec.Answer{Value: []byte(`"` + strings.Repeat("x", maxAnswerBytes) + `"`)}, "", "failed", "bytes, at most"},
		"denied":        {spec.Answer{Value: []byte(`1`), Denied: "us\xffer"}, "", "us\uFFFDer", ""},
		"denied, long":  {spec.Answer{Denied: strings.Repeat("x", 1<<20)}, "", strings.Repeat("x", 4<<10) + "…", ""},
		"nobody's time": {spec.Answer{Denied: "timeout"}, "", "timeout", ""},
	} {
		answer, err := test.answer.Passable(maxAnswerBytes)
		warning := ""
		if err != nil {
			warning = err.Error()
		}
		got := answerOf("call", "q", answer)
		if string(got.GetValue()) != test.value || got.GetReason() != test.denied || !strings.Contains(warning, test.warn) || (warning == "") != (test.warn == "") {
			t.Errorf("%s: %.80q, %.80q, warning %q", name, got.GetValue(), got.GetReason(), warning)
		}
		if answered := got.GetOutcome() == pluginv1.AnswerRequest_OUTCOME_ANSWERED; answered != (test.denied == "") {
			t.Errorf("%s: outcome %s", name, got.GetOutcome())
		}
		if _, err := proto.Marshal(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
