package budget

import (
	"math"
	"testing"
	"time"
)

func TestFormat(t *testing.T) {
	want := map[time.Duration]string{
		Infinite:                "infinite",
		0:                       "0s",
		300 * time.Millisecond:  "300ms",
		30 * time.Second:        "30s",
		2 * time.Minute:         "2m",
		90 * time.Second:        "1m30s",
		time.Hour:               "1h",
		time.Hour + time.Second: "1h0m1s",
		70 * time.Minute:        "1h10m",
		-2 * time.Minute:        "-2m",
	}
	for d, text := range want {
		if got := Format(d); got != text {
			t.Errorf("Format(%d) = %q, want %q", int64(d), got, text)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	want := map[time.Duration]int64{
		Infinite:             0,
		Infinite - 1:         math.MaxInt64/1_000_000 + 1,
		0:                    0,
		1:                    1,
		time.Millisecond:     1,
		time.Millisecond + 1: 2,
		-1:                   -1,
		-time.Millisecond:    -1,
		math.MinInt64:        math.MinInt64/1_000_000 - 1,
	}
	for d, ms := range want {
		if got := Milliseconds(d); got != ms {
			t.Errorf("Milliseconds(%d) = %d, want %d", int64(d), got, ms)
		}
	}
}

func TestSoft(t *testing.T) {
	for _, c := range []struct{ asked, timeout, want time.Duration }{
		{0, 30 * time.Second, 10 * time.Second},
		{0, 2 * time.Second, 2 * time.Second},
		{-1, 30 * time.Second, 10 * time.Second},
		{20 * time.Second, 30 * time.Second, 20 * time.Second},
		{time.Minute, 30 * time.Second, 30 * time.Second},
		{0, Infinite, 10 * time.Second},
		{Infinite, Infinite, Infinite},
		{Infinite, time.Second, time.Second},
	} {
		if got := Soft(c.asked, c.timeout); got != c.want {
			t.Errorf("Soft(%s, %s) = %s, want %s", Format(c.asked), Format(c.timeout), Format(got), Format(c.want))
		}
	}
}

func TestGrace(t *testing.T) {
	for _, c := range []struct {
		asked, want time.Duration
		warns       bool
	}{
		{0, 2 * time.Second, false},
		{NoGrace, 0, false},
		{1, 1, false},
		{500 * time.Millisecond, 500 * time.Millisecond, false},
		{30 * time.Second, 30 * time.Second, false},
		{30*time.Second + 1, 30 * time.Second, true},
		{Infinite, 30 * time.Second, true},
		{-time.Second, 0, true},
		{math.MinInt64, 0, true},
	} {
		got, warnings := Grace(c.asked)
		if got != c.want || (len(warnings) > 0) != c.warns {
			t.Errorf("Grace(%s) = %s, %q", Format(c.asked), Format(got), warnings)
		}
	}
}

func TestAnswerWithin(t *testing.T) {
	for _, c := range []struct{ timeout, grace, want time.Duration }{
		{30 * time.Second, 2 * time.Second, 33 * time.Second},
		{time.Second, 0, 2 * time.Second},
		{-time.Second, -time.Second, time.Second},
		{Infinite, 2 * time.Second, Infinite},
		{Infinite - 1, Infinite - 1, Infinite},
	} {
		if got := AnswerWithin(c.timeout, c.grace); got != c.want {
			t.Errorf("AnswerWithin(%s, %s) = %s", Format(c.timeout), Format(c.grace), Format(got))
		}
	}
}
