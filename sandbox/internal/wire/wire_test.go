package wire

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

var samples = []Options{
	{},
	{Namespaced: true, Path: "/bin/true"},
	{Proc: true, Dir: "/"},
	{Kill: true, Extra: 3, TimerNS: math.MaxInt64, SocketDir: "/run/toolhost/1"},
	{SocketDir: "a\nb\n\n", Dir: `"quoted" 'single' ` + "`back`", Path: `back\slash\n` + "\n"},
	{SocketDir: "\xff\xfe", Dir: "ä\u2028\t\r", Path: "\n"},
}

func TestOptionsRoundTrip(t *testing.T) {
	for _, want := range samples {
		got, err := Decode(want.Encode())
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", want.Encode(), got, err, want)
		}
	}
}

// The launcher gets the options as an argument: execve(2) takes no NUL.
func TestEncodedOptionsHoldNoNUL(t *testing.T) {
	if s := (Options{Path: "a\x00b"}).Encode(); strings.Contains(s, "\x00") || !utf8.ValidString(s) {
		t.Errorf("encoded %q", s)
	}
}

func TestMalformedOptions(t *testing.T) {
	good := Options{Extra: 1, TimerNS: 2, SocketDir: "s", Dir: "d", Path: "p"}.Encode()
	if _, err := Decode(good); err != nil {
		t.Fatal(err)
	}
	f := strings.Split(good, "\n")
	with := func(i int, value string) string {
		changed := append([]string(nil), f...)
		changed[i] = value
		return strings.Join(changed, "\n")
	}
	for _, s := range []string{
		"", "\n", good + "\n", good + "\n0", strings.Join(f[:7], "\n"),
		with(3, ""), with(3, "-1"), with(3, "x"), with(3, "99999999999999999999"),
		with(4, ""), with(4, "-1"), with(4, "1s"), with(4, "9223372036854775808"),
		with(5, "s"), with(5, ""), with(6, `"d`), with(6, `"\q"`), with(7, "p"), with(7, `"p"x`),
	} {
		if o, err := Decode(s); err == nil || o != (Options{}) {
			t.Errorf("%q: got %+v, %v", s, o, err)
		}
	}
}

func FuzzOptionsRoundTrip(f *testing.F) {
	for _, o := range samples {
		f.Add(o.Namespaced, o.Proc, o.Kill, o.Extra, o.TimerNS, o.SocketDir, o.Dir, o.Path)
	}
	f.Fuzz(func(t *testing.T, namespaced, proc, kill bool, extra int, timer int64, socketDir, dir, path string) {
		want := Options{
			Namespaced: namespaced, Proc: proc, Kill: kill, Extra: extra, TimerNS: timer,
			SocketDir: socketDir, Dir: dir, Path: path,
		}
		got, err := Decode(want.Encode())
		if extra < 0 || timer < 0 {
			if err == nil {
				t.Fatalf("accepted %+v", want)
			}
			return
		}
		if err != nil || got != want {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, o := range samples {
		f.Add(o.Encode())
	}
	f.Add("0\n0\n0\n0\n0\n`a`\n'b'\n\"\\xff\"")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Decode(s)
		if err != nil {
			if got != (Options{}) {
				t.Fatalf("%q: %+v beside %v", s, got, err)
			}
			return
		}
		if got.Extra < 0 || got.TimerNS < 0 {
			t.Fatalf("%q: accepted %+v", s, got)
		}
		if again, err := Decode(got.Encode()); err != nil || again != got {
			t.Fatalf("%q: %+v became %+v, %v", s, got, again, err)
		}
	})
}

func TestFailureRoundTrip(t *testing.T) {
	for _, want := range []Failure{
		{}, {"mount /proc", 1}, {"a\nb\x00", math.MaxUint32}, {strings.Repeat("x", MaxMessageBytes-5), 0x01020304},
	} {
		message := AppendFailure(nil, want)
		if message[0] != KindFailed || len(message) > MaxMessageBytes {
			t.Errorf("message of kind %q, %d bytes", message[0], len(message))
		}
		if got, ok := ParseFailure(message); !ok || got != want {
			t.Errorf("got %+v, %v; want %+v", got, ok, want)
		}
	}
}

func TestALongFailureFitsAMessage(t *testing.T) {
	message := AppendFailure(nil, Failure{Step: strings.Repeat("x", MaxMessageBytes), Errno: 7})
	got, ok := ParseFailure(message)
	if len(message) != MaxMessageBytes || !ok || got.Errno != 7 || got.Step != strings.Repeat("x", MaxMessageBytes-5) {
		t.Errorf("%d bytes, %v, errno %d, step of %d bytes", len(message), ok, got.Errno, len(got.Step))
	}
}

func TestWhatIsNoFailure(t *testing.T) {
	for _, message := range [][]byte{nil, {KindFailed}, {KindFailed, 1, 2, 3}, {KindReady, 1, 0, 0, 0, 'x'}, AppendNumber(nil, KindExited, 1)} {
		if f, ok := ParseFailure(message); ok || f != (Failure{}) {
			t.Errorf("%q: %+v", message, f)
		}
	}
}

func TestNumberRoundTrip(t *testing.T) {
	for _, kind := range []byte{KindExited, KindTimer} {
		for _, want := range []uint64{0, 9, 1 << 8, 0x0102030405060708, math.MaxUint64} {
			message := AppendNumber(nil, kind, want)
			if got, ok := ParseNumber(message); !ok || got != want || message[0] != kind {
				t.Errorf("%q: got %d, %v; want %d", message, got, ok, want)
			}
		}
	}
}

func TestWhatIsNoNumber(t *testing.T) {
	message := AppendNumber(nil, KindTimer, math.MaxUint64)
	for _, bad := range [][]byte{nil, message[:1], message[:8], append(bytes.Clone(message), 0)} {
		if v, ok := ParseNumber(bad); ok || v != 0 {
			t.Errorf("%q: %d", bad, v)
		}
	}
}

func TestMessagesAreAppended(t *testing.T) {
	prefix := []byte("before")
	for _, message := range [][]byte{AppendFailure(prefix, Failure{Step: "x"}), AppendNumber(prefix, KindTimer, 1)} {
		if !bytes.HasPrefix(message, prefix) || len(message) <= len(prefix) {
			t.Errorf("message %q", message)
		}
	}
}
