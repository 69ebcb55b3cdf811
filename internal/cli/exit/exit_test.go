package exit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/api"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		code int
		text string
	}{
		{nil, OK, ""},
		{errors.New("unknown flag"), Usage, "unknown flag"},
		{With(Host, errors.New("a")), Host, "a"},
		{With(Failed, nil), Failed, ""},
		{errors.Join(With(Failed, errors.New("a")), With(Usage, errors.New("b"))), Failed, "a\nb"},
	} {
		if got := Of(test.err); got.Code != test.code || got.Error() != test.text {
			t.Errorf("%v: %d, %q; want %d, %q", test.err, got.Code, got.Error(), test.code, test.text)
		}
	}
}

// Lines are ours, whatever the text of an error quotes.
func TestTell(t *testing.T) {
	t.Parallel()
	a, b := errors.New("a"), errors.New("b\nok: forged\x1b[2J")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"plain":                {b, `x: b\nok: forged\x1b[2J`},
		"joined":               {errors.Join(a, b), "x: a\n" + `x: b\nok: forged\x1b[2J`},
		"joined within":        {With(Usage, errors.Join(With(Failed, a), errors.Join(a, b))), "x: a\nx: a\n" + `x: b\nok: forged\x1b[2J`},
		"wrapped":              {fmt.Errorf("both %w and %w", a, a), "x: both a and a"},
		"joined, then wrapped": {fmt.Errorf("both: %w", errors.Join(a, a)), `x: both: a\na`},
		"said already":         {errors.Join(With(Failed, nil), a), "x: a"},
		"endless":              {errors.New(strings.Repeat("ä", 1<<20)), "x: " + strings.Repeat("ä", maxLineRunes-1) + "…"},
	} {
		var got bytes.Buffer
		if Tell(&got, "x", test.err); got.String() != test.want+"\n" {
			t.Errorf("%s: %.300q, want %.300q", name, got.String(), test.want)
		}
	}
}

// What could not be written is not an error of usage, even if nobody has looked.
func TestStdout(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	out := &Stdout{File: full}
	_, err = out.Write([]byte("x"))
	const want = "cannot write to standard output: no space left on device; send it elsewhere"
	for _, got := range []*Error{Of(err), out.End(nil), out.End(err)} {
		if got.Code != Host || got.Error() != want {
			t.Errorf("%d, %q; want %d, %q", got.Code, got.Error(), Host, want)
		}
	}
	if got := out.End(Usagef("wrong")); got.Code != Usage {
		t.Errorf("%d, %q", got.Code, got.Error())
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out = &Stdout{File: file}
	if n, err := out.Write([]byte("x")); n != 1 || err != nil || out.End(nil).Code != OK {
		t.Errorf("%d, %v, %v", n, err, out.End(nil))
	}
}

// A command whose reader has gone ends as by SIGPIPE, unless something else went wrong.
func TestStdoutWithoutAReader(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	_ = read.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	defer signal.Stop(signals)
	out := &Stdout{File: write}
	_, _ = out.Write([]byte("x"))
	_, err = out.Write([]byte("y"))
	for _, got := range []*Error{out.End(nil), out.End(err), out.End(With(Host, err))} {
		if got.Code != 141 || got.Err != nil {
			t.Errorf("%d, %v", got.Code, got.Err)
		}
	}
	if got := out.End(With(Host, fmt.Errorf("%w, and more", err))); got.Code != Host || got.Err == nil {
		t.Errorf("%d, %v", got.Code, got.Err)
	}
	if got := out.End(With(Timeout, nil)); got.Code != Timeout {
		t.Errorf("%d, %v", got.Code, got.Err)
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	for reason, want := range map[api.Reason]int{"start": Usage, "not_executable": Usage, "sha256": Usage, "not_found": Failed, "server": Failed, "slow": Failed, "host": Host, "": Host} {
		if got := Start(reason); got != want {
			t.Errorf("%q: %d, want %d", reason, got, want)
		}
	}
}
