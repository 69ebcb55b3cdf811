package journal

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"go.uber.org/goleak"
)

// roleVar makes the test binary play an owner that is killed, or one whose disk is full.
const roleVar = "JOURNAL_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); role {
	case "":
		goleak.VerifyTestMain(m)
	case "append", "append ahead":
		playAppender(os.Args[1], os.Args[2], role == "append ahead")
	case "turns":
		playTurns(os.Args[1], os.Args[2])
	case "full":
		playFull(os.Args[1])
	default:
		panic("bug: unknown role")
	}
}

// start is when all test events happen, a second apart: too late to be pruned for their age, and the same in a child,
// which has it from startVar.
var start = func() time.Time {
	at, err := time.Parse(time.RFC3339, os.Getenv(startVar))
	if err != nil {
		at = time.Now().UTC().Truncate(time.Second)
	}
	return at.Add(123456789 * time.Nanosecond)
}()

const startVar = "JOURNAL_TEST_START"

// childEnv makes the test binary play the role.
func childEnv(role string) []string {
	return append(os.Environ(), roleVar+"="+role, startVar+"="+start.Format(time.RFC3339))
}

// event makes one whose content follows from its turn and seq, of 0 to 600 bytes.
func event(turn string, seq int64, kind api.EventKind) Event {
	filler := strings.Repeat("é\x00\n", int(seq*37%200)) // kept as it is, though it is not JSON
	return Event{
		TurnID: turn, Seq: seq, Kind: kind, Time: start.Add(time.Duration(seq) * time.Second),
		JSON: fmt.Appendf(nil, `{"turnId":%q, "seq" : %d,"x":"%s"}`, turn, seq, filler),
	}
}

func callEvent(turn string, seq int64, kind api.EventKind, call, tool string) Event {
	e := event(turn, seq, kind)
	e.CallID, e.Tool = call, tool
	return e
}

// ending makes the event that ends a call.
func ending(turn string, seq int64, call, tool string, status api.Status) Event {
	kind := api.EventFinished
	if status != "ok" {
		kind = api.EventFailed
	}
	e := callEvent(turn, seq, kind, call, tool)
	e.Outcome = &Outcome{Status: status, Elapsed: 1500 * time.Millisecond, Result: []byte(`{"call": "` + call + `"}`)}
	return e
}

// wholeTurn is a turn with one call.
func wholeTurn(turn, tool string, status api.Status) []Event {
	return []Event{
		event(turn, 1, "turn_start"),
		callEvent(turn, 2, api.EventQueued, "c1", tool),
		callEvent(turn, 3, api.EventStarted, "c1", tool),
		ending(turn, 4, "c1", tool, status),
		event(turn, 5, api.EventTurnEnd),
	}
}

func mustOpen(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	j, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func mustRead(t testing.TB, dir string) *Reader {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func mustAppend(t testing.TB, j *Journal, events ...Event) {
	t.Helper()
	if err := j.Append(events...); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func collect(t testing.TB, r *Reader, turn string, after int64) []Event {
	t.Helper()
	var events []Event
	if err := r.Events(turn, after, func(e Event) bool { events = append(events, e); return true }); err != nil {
		t.Fatal(err)
	}
	return events
}

// expectSame compares what was replayed with what was appended.
func expectSame(t testing.TB, got, want []Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if !sameEvent(got[i], want[i]) {
			t.Fatalf("event %d of %s is not as it was appended (seq %d, %v, JSON of %d bytes); want seq %d, %v, JSON of %d bytes",
				i, want[i].TurnID, got[i].Seq, got[i].Time, len(got[i].JSON), want[i].Seq, want[i].Time, len(want[i].JSON))
		}
	}
}

func sameEvent(a, b Event) bool {
	return a.TurnID == b.TurnID && a.Seq == b.Seq && a.Kind == b.Kind && a.CallID == b.CallID && a.Tool == b.Tool &&
		a.Time.Equal(b.Time) && bytes.Equal(a.JSON, b.JSON)
}

// expectError wants an error that is target, if one is given, and says each of the words.
func expectError(t testing.TB, err, target error, words ...string) {
	t.Helper()
	if err == nil || target != nil && !errors.Is(err, target) {
		t.Fatalf("error %v, want %v", err, target)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// makeFirst makes a database of the first version, with these rows.
func makeFirst(t *testing.T, dir, rows string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(schema1 + "PRAGMA journal_mode = WAL; PRAGMA user_version = 1;\n" + rows)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
