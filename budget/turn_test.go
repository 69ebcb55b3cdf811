package budget

import (
	"math/rand/v2"
	"testing"
	"time"
)

var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return zero.Add(d) }

func TestTurnCallCap(t *testing.T) {
	turn := NewTurn(zero, TurnSpec{MaxCalls: 2})
	for i := range 4 {
		refused := turn.Count()
		if want := []Refusal{"", "", RefusalCalls, RefusalCalls}[i]; refused != want {
			t.Errorf("call %d: refused %q, want %q", i, refused, want)
		}
	}
	if turn.Calls() != 4 || turn.CallsLeft() != 0 {
		t.Errorf("%d calls, %d left", turn.Calls(), turn.CallsLeft())
	}
}

// Parallel calls use the turn's tool time once.
func TestToolTimeIsAUnion(t *testing.T) {
	turn := NewTurn(zero, TurnSpec{ToolTime: 10 * time.Second})
	turn.Reserve(at(0), time.Minute)
	turn.Reserve(at(2*time.Second), time.Minute)
	turn.Release(at(4 * time.Second))
	turn.Release(at(5 * time.Second))
	if got := turn.ToolTime(at(time.Hour)); got != 5*time.Second {
		t.Errorf("tool time %s, want 5s", got)
	}
	granted, refused := turn.Reserve(at(time.Hour), time.Minute)
	if granted != 5*time.Second || refused != "" {
		t.Errorf("granted %s, refused %q; want the 5s that are left", granted, refused)
	}
	turn.Release(at(time.Hour + 5*time.Second))
	if _, refused := turn.Reserve(at(2*time.Hour), time.Minute); refused != RefusalToolTime {
		t.Errorf("refused %q", refused)
	}
}

func TestDeadlineKeepsAReserveAndWaitsForHumans(t *testing.T) {
	turn := NewTurn(zero, TurnSpec{Deadline: time.Minute})
	turn.Waiting(at(10 * time.Second))
	if _, ok := turn.Deadline(at(20 * time.Second)); ok {
		t.Error("a deadline while a human is waited for")
	}
	turn.Resumed(at(40 * time.Second)) // 10 s of the turn have passed
	if got, ok := turn.Deadline(at(40 * time.Second)); !ok || !got.Equal(at(90*time.Second)) {
		t.Errorf("deadline %v, %v", got, ok)
	}
	granted, refused := turn.Reserve(at(40*time.Second), time.Hour)
	if granted != 40*time.Second || refused != "" {
		t.Errorf("granted %s, refused %q; want 60-10-10 = 40s", granted, refused)
	}
	turn.Release(at(80 * time.Second))
	if _, refused := turn.Reserve(at(80*time.Second), time.Hour); refused != RefusalDeadline {
		t.Errorf("refused %q, want the reserve kept", refused)
	}
}

func TestWithoutBoundsAllIsGranted(t *testing.T) {
	turn := NewTurn(zero, TurnSpec{})
	if granted, refused := turn.Reserve(at(time.Hour), Infinite); granted != Infinite || refused != "" {
		t.Errorf("granted %s, refused %q", granted, refused)
	}
	if _, ok := turn.Remaining(at(time.Hour)); ok {
		t.Error("a remainder without a bound")
	}
}

// The clocks never consume one another, whatever the order of things.
func TestClocksAreIndependent(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		turn := NewTurn(zero, TurnSpec{MaxCalls: 1000, Deadline: time.Hour, StreamDuration: time.Hour})
		now := zero
		var tools, human, streamed time.Duration
		for range 50 {
			d := time.Duration(random.IntN(1000)) * time.Millisecond
			switch random.IntN(3) {
			case 0:
				if _, refused := turn.Reserve(now, time.Minute); refused != "" {
					continue
				}
				now = now.Add(d)
				turn.Release(now)
				tools += d
			case 1:
				turn.Waiting(now)
				now = now.Add(d)
				turn.Resumed(now)
				human += d
			case 2:
				turn.Streaming(now, true)
				now = now.Add(d)
				turn.Streaming(now, false)
				streamed += d
			}
		}
		left, _ := turn.Remaining(now)
		want := time.Hour - DefaultReserve - tools - streamed
		if turn.ToolTime(now) != tools || turn.HumanWait(now) != human || turn.StreamLeft(now) != time.Hour-streamed || left != want {
			t.Fatalf("seed %d: tool time %s of %s, human %s of %s, stream left %s, remaining %s of %s", seed, turn.ToolTime(now), tools, turn.HumanWait(now), human, turn.StreamLeft(now), left, want)
		}
	}
}

func TestNegativeBoundsAreRefused(t *testing.T) {
	for _, spec := range []TurnSpec{{MaxCalls: -1}, {ToolTime: -1}, {Deadline: -1}, {StreamDuration: -1}, {Reserve: -2}} {
		if spec.Check() == nil {
			t.Errorf("%+v is taken", spec)
		}
	}
	for _, spec := range []TurnSpec{{}, {Reserve: NoReserve}, {MaxCalls: 1, ToolTime: 1, Deadline: 1, Reserve: 1, StreamDuration: 1}} {
		if err := spec.Check(); err != nil {
			t.Error(err)
		}
	}
}
