package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

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
	for _, kind := range []byte{KindBorn, KindExited, KindTimer} {
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

// Kinds that go the same way on one socket must differ.
func TestKindsDiffer(t *testing.T) {
	seen := map[byte]bool{}
	for _, kind := range []byte{KindBorn, KindSockets, KindReady, KindStarted, KindFailed, KindExited, KindTimer, RequestBirth, RequestConnect} {
		if seen[kind] {
			t.Errorf("kind %q twice", kind)
		}
		seen[kind] = true
	}
}

func FuzzFailure(f *testing.F) {
	f.Add("mount /proc", uint32(1), []byte{KindFailed, 1, 0, 0, 0, 'x'})
	f.Add(strings.Repeat("x", 600), uint32(math.MaxUint32), []byte{KindReady})
	f.Fuzz(func(t *testing.T, step string, errno uint32, raw []byte) {
		message := AppendFailure(nil, Failure{step, errno})
		got, ok := ParseFailure(message)
		if !ok || got.Errno != errno || got.Step != step[:min(len(step), MaxMessageBytes-5)] || len(message) > MaxMessageBytes {
			t.Fatalf("%q, %d became %+v, %v", step, errno, got, ok)
		}
		if parsed, ok := ParseFailure(raw); ok && len(raw) <= MaxMessageBytes && !bytes.Equal(AppendFailure(nil, parsed), raw) {
			t.Fatalf("%q became %+v", raw, parsed)
		}
	})
}

func FuzzNumber(f *testing.F) {
	f.Add(KindExited, uint64(9), []byte("123456789"))
	f.Fuzz(func(t *testing.T, kind byte, v uint64, raw []byte) {
		if got, ok := ParseNumber(AppendNumber(nil, kind, v)); !ok || got != v {
			t.Fatalf("%d became %d, %v", v, got, ok)
		}
		if n, ok := ParseNumber(raw); ok && !bytes.Equal(AppendNumber(nil, raw[0], n), raw) {
			t.Fatalf("%q became %d", raw, n)
		}
	})
}

// AppendFailure renders a KindFailed message.
func AppendFailure(b []byte, f Failure) []byte {
	b = append(b, KindFailed)
	b = binary.LittleEndian.AppendUint32(b, f.Errno)
	step := f.Step
	if limit := MaxMessageBytes - 5; len(step) > limit {
		step = step[:limit]
	}
	return append(b, step...)
}
