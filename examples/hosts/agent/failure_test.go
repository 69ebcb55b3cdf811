package main

import (
	"bufio"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A tool that must be killed costs the turn nothing but its time: what it had
// sent by then goes to the model, marked as an error.
func TestTimeoutGoesBackWithWhatCameBefore(t *testing.T) {
	s := newServer(t,
		anthropicStream("Wait.", scriptedCall{"call_1", "stubborn", `{"children":2,"_meta":{"dev.toolhost/timeoutMs":5000}}`}),
		anthropicStream("It would not end."))
	// What the tool takes, 5 s and its grace, does not count as the model's time.
	newSession(t, s, "anthropic", "--stream-duration", "4s", "--plugin", binary(t, "stubborn"), "Go").ends(t, exitOK)
	second, _ := s.body(t, 1, 2)
	ids, texts, failed, _ := answered(t, "anthropic", second)
	if !slices.Equal(ids, []string{"call_1"}) || !failed[0] {
		t.Fatalf("results of %q, failed %v", ids, failed)
	}
	contains(t, "the result", texts[0], "started 2 grandchildren", "[TIMEOUT]")
}

func TestCtrlCEndsTheCalls(t *testing.T) {
	started, told := "[1.1 stubborn] started", "press Ctrl-C again"
	for name, when := range map[string][]string{"once": {started}, "twice": {started, told}} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, anthropicStream("Wait.", scriptedCall{"call_1", "stubborn", `{"children":2}`}))
			r := newSession(t, s, "anthropic", "--plugin", binary(t, "stubborn"), "Go")
			r.interruptedAt(t, when)
			contains(t, "stderr", r.stderr.String(), told, "[1.1 stubborn] cancelled: ", "agent: interrupted")
			s.body(t, 0, 1) // nothing more was asked
		})
	}
}

// interruptedAt presses Ctrl-C whenever stderr has a line with one of the texts.
func (r *session) interruptedAt(t *testing.T, texts []string) {
	t.Helper()
	r.Stderr = nil
	pipe, err := r.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(io.TeeReader(pipe, &r.stderr))
	for lines.Scan() {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(lines.Text(), text) }) {
			if err := r.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
	}
	r.ended(t, r.Wait(), exitInterrupted)
}

func TestCtrlCWhileTheModelSpeaks(t *testing.T) {
	half := anthropicStream("I think that", scriptedCall{"call_1", "search", `{}`}).body
	asked, release := make(chan struct{}), make(chan struct{})
	s := &server{Server: httptest.NewServer(hang(half[:len(half)/2], asked, release))}
	defer s.Close()
	defer close(release)
	r := newSession(t, s, "anthropic", "Go")
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := r.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	r.ended(t, r.Wait(), exitInterrupted)
	contains(t, "stderr", r.stderr.String(), "agent: interrupted")
}

func TestTheModelsTimeIsBounded(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	s := &server{Server: httptest.NewServer(hang("", asked, release))}
	defer s.Close()
	defer close(release)
	r := newSession(t, s, "anthropic", "--stream-duration", "300ms", "Go")
	r.ends(t, exitFailed)
	contains(t, "stderr", r.stderr.String(), "agent: the turn's time for the model to stream is used up: give it more with --stream-duration\n")
}

func TestBusyServerIsAskedAgain(t *testing.T) {
	refusals := []step{
		{500, "0", "<html>oops"},
		{429, "0", `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`},
		{529, "0", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
	}
	s := newServer(t, append(slices.Clone(refusals), anthropicStream("At last."))...)
	r := newSession(t, s, "anthropic", "Go")
	r.ends(t, exitOK)
	contains(t, "stdout", r.stdout.String(), "At last.")
	contains(t, "stderr", r.stderr.String(), "oops", "slow down; trying again in 0s", "Overloaded")

	s = newServer(t, append(refusals, refusals...)...)
	r = newSession(t, s, "anthropic", "Go")
	r.ends(t, exitFailed)
	s.body(t, 0, maxAttempts)
}

func TestRefusalsEndIt(t *testing.T) {
	for _, c := range []struct {
		step step
		want string
	}{
		{step{401, "", `{"error":{"message":"bad \u001b[31mkey"}}`}, "status 401: bad \ufffd[31mkey"},
		{step{429, "3600", `{"error":{"message":"come back later"}}`}, "come back later"},
		{step{307, "", ""}, "status 307"},
		{step{body: "data: {\"type\":\"mess\r\n\r\n"}, "cannot read an event"},
		{step{body: "data: {\"type\":\"message_start\"}\n\n"}, "the stream ended before"},
		{step{body: "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"}, "Overloaded"},
		{step{body: "data: {\"type\":\"content_block_delta\",\"index\":3}\n\n"}, "block 3, which has not begun"},
	} {
		s := newServer(t, c.step)
		r := newSession(t, s, "anthropic", "Go")
		r.ends(t, exitFailed)
		contains(t, "stderr", r.stderr.String(), c.want)
		s.body(t, 0, 1)
	}
}

func TestRoundsAreBounded(t *testing.T) {
	call := anthropicStream("Again.", scriptedCall{"call_1", "nothing", `{}`})
	s := newServer(t, call, call, call)
	r := newSession(t, s, "anthropic", "--max-rounds", "2", "Go")
	r.ends(t, exitFailed)
	contains(t, "stderr", r.stderr.String(), `there is no tool "nothing"`, "after 2 rounds")
	s.body(t, 0, 2)
}

// A pause is not a last word: the model goes on when it gets back what it said.
func TestPausedTurnGoesOn(t *testing.T) {
	paused := strings.Replace(anthropicStream("Searching.").body, `"end_turn"`, `"pause_turn"`, 1)
	s := newServer(t, step{body: paused}, anthropicStream("Found it."))
	r := newSession(t, s, "anthropic", "Go")
	r.ends(t, exitOK)
	contains(t, "stdout", r.stdout.String(), "Searching.", "Found it.")
	second, _ := s.body(t, 1, 2)
	messages := second["messages"].([]any)
	if last := messages[len(messages)-1].(map[string]any); len(messages) != 2 || last["role"] != "assistant" {
		t.Errorf("the history is %v", messages)
	}
}

// Whatever a call looks like, it costs no other one, and not the conversation:
// each has its result, under the id that the API gave it.
func TestOddCallsAreAnswered(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
	}
	long := strings.Repeat("x", 500)
	for api, stream := range streams {
		s := newServer(t, stream("Odd.",
			scriptedCall{"deep", "wordcount", nested(300)}, scriptedCall{"deeper", "wordcount", nested(9999)},
			scriptedCall{long, "wordcount", `{"text":"one two"}`}, scriptedCall{"2", "wordcount", `{"text":"three"}`}), stream("Well."))
		r := newSession(t, s, api, "--plugin", binary(t, "wordcount"), "Go")
		r.ends(t, exitOK)
		second, raw := s.body(t, 1, 2)
		ids, texts, _, _ := answered(t, api, second)
		if !slices.Equal(ids, []string{"deep", "deeper", long, "2"}) {
			t.Fatalf("%s: results of %.100q", api, ids)
		}
		contains(t, api+", deep", texts[0], "more than 256 levels of nesting")
		contains(t, api+", deeper", texts[1], "[FAILED]")
		contains(t, api+", long", texts[2], `"words":2`)
		contains(t, api+", 2", texts[3], `"words":1`)
		if n := strings.Count(raw, "INVALID_JSON"); n != 2 {
			t.Errorf("%s: %d arguments of the history are marked, want 2", api, n)
		}
	}
}

func TestCutAnswerIsAFailure(t *testing.T) {
	for api, reasons := range map[string][2]string{
		"anthropic": {`"end_turn"`, `"max_tokens"`}, "openai-chat": {`"stop"`, `"length"`},
		"openai": {`"status":"completed","error":null`, `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`},
	} {
		cut := strings.Replace(streams[api]("And so").body, reasons[0], reasons[1], 1)
		s := newServer(t, step{body: cut})
		r := newSession(t, s, api, "Go")
		r.ends(t, exitFailed)
		contains(t, "stdout", r.stdout.String(), "And so")
		contains(t, "stderr", r.stderr.String(), "the model's answer is not complete")
	}
}
