package escape

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	contained = `{"probe":"a","case":"x","errno":"EPERM","escaped":false}` + "\n"
	escapes   = `{"probe":"a","case":"y","escaped":true}` + "\n"
	ends      = `{"probe":"a","case":"end","facts":2}` + "\n"
)

func TestJudge(t *testing.T) {
	tests := []struct {
		name    string
		input   string
		want    []string
		facts   int
		escaped int
		err     string // part of it; empty for none
	}{
		{"complete", contained + escapes + ends, []string{"a"}, 2, 1, ""},
		{"twice", contained + escapes + ends + contained + escapes + ends, nil, 4, 2, ""},
		{"interleaved", contained + `{"probe":"b","case":"z"}` + "\n" + escapes + ends + `{"probe":"b","case":"end","facts":1}`, []string{"a", "b"}, 3, 1, ""},
		{"empty", "", nil, 0, 0, "no facts"},
		{"no end", contained + escapes, nil, 2, 1, "no end after 2"},
		{"cut within a line", contained + escapes[:20], nil, 1, 0, "cannot read fact"},
		{"a fact lost", escapes + ends, nil, 1, 1, "1 facts, its end says 2"},
		{"no facts but an end", `{"probe":"a","case":"end","facts":0}`, nil, 0, 0, "0 facts"},
		{"facts after the end", contained + escapes + ends + contained, nil, 3, 1, "no end after 1"},
		{"end of another", contained + escapes + `{"probe":"b","case":"end","facts":2}`, nil, 2, 1, "probe b"},
		{"group missing", contained + escapes + ends, []string{"a", "c"}, 2, 1, "probe c did not run"},
		{"garbage", contained + "panic: oops\n" + escapes + ends, nil, 1, 0, "panic: oops"},
		{"other json", `{"level":"info"}`, nil, 0, 0, "no probe"},
		{"blank line", "\n", nil, 0, 0, "cannot read fact"},
		{"long line", strings.Repeat("x", maxLineBytes+1), nil, 0, 0, "too long"},
	}
	for _, tt := range tests {
		facts, escaped, err := Judge(strings.NewReader(tt.input), tt.want...)
		if facts != tt.facts || len(escaped) != tt.escaped {
			t.Errorf("%s: %d facts, %d escaped, want %d, %d", tt.name, facts, len(escaped), tt.facts, tt.escaped)
		}
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
		}
	}
}

func TestExpectArgs(t *testing.T) {
	env := Expect{UID: 7, Canary: "tell nobody", Namespaces: map[string]uint64{"net": 9}, Writable: []string{"/w"}}
	args := env.Args("fds", "ipc")
	if len(args) != 3 || strings.Contains(args[0], "tell nobody") {
		t.Fatalf("arguments %q", args)
	}
	var got Expect
	if err := json.Unmarshal([]byte(args[0]), &got); err != nil {
		t.Fatal(err)
	}
	if got.UID != 7 || got.Canary != env.Canary || got.Namespaces["net"] != 9 || !got.mayWrite("/w/x") || got.mayWrite("/wx") {
		t.Errorf("got %+v", got)
	}
}
