package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/testenv/wait"
	"github.com/toolhost/toolhost/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDefault(t *testing.T) {
	home := "/home/x"
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"named":        {map[string]string{Variable: "here", "HOME": home}, "here"},
		"XDG":          {map[string]string{"XDG_STATE_HOME": "/s", "HOME": home}, "/s/toolhost"},
		"XDG relative": {map[string]string{"XDG_STATE_HOME": "s", "HOME": home}, "/home/x/.local/state/toolhost"},
		"home":         {map[string]string{"HOME": home}, "/home/x/.local/state/toolhost"},
		"nothing":      {nil, ""},
	} {
		for _, variable := range []string{Variable, "XDG_STATE_HOME", "HOME"} {
			t.Setenv(variable, test.env[variable])
		}
		want := test.want
		if os.Geteuid() == 0 && test.env[Variable] == "" {
			want = "/var/lib/toolhost"
		}
		if got, err := Default(); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func claim(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := Claim(dir, journal.Options{})
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

// begin appends the beginning of a turn; end its end.
func begin(t *testing.T, j *journal.Journal, id string) {
	t.Helper()
	add(t, j, api.Event{Kind: api.EventTurnStart, TurnID: id, Seq: 1})
}

func end(t *testing.T, j *journal.Journal, id string) {
	t.Helper()
	add(t, j, api.Event{Kind: api.EventTurnEnd, TurnID: id, Seq: 2})
}

func add(t *testing.T, j *journal.Journal, e api.Event) {
	t.Helper()
	e.Time = time.Now()
	raw, err := json.Marshal(e)
	if err == nil {
		err = journal.Turns{Journal: j}.Append(turn.Record{Record: api.Record{Event: e, JSON: raw}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func openLog(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func ids(t *testing.T, l *Log, f api.Filter) (list []string) {
	t.Helper()
	turns, err := l.Turns(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range turns {
		list = append(list, fmt.Sprintf("%s %s", one.TurnID, one.State))
	}
	return list
}

// Commands that run at the same time have journals of their own, a daemon has
// its own, and a log shows all of them as one.
func TestJournalsBesideOneAnother(t *testing.T) {
	dir := t.TempDir()
	daemon, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	first, second := claim(t, dir), claim(t, dir)
	begin(t, first, "a")
	begin(t, daemon, "b")
	begin(t, second, "c")
	end(t, first, "a")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third := claim(t, dir)
	if third.Dir() != first.Dir() {
		t.Errorf("the third command has %s, want %s, which is free again", third.Dir(), first.Dir())
	}
	begin(t, third, "d")
	l := openLog(t, dir)
	if got, want := ids(t, l, api.Filter{}), []string{"d open", "c open", "b open", "a ended"}; !slices.Equal(got, want) {
		t.Errorf("turns %q, want %q", got, want)
	}
	if got, want := ids(t, l, api.Filter{Limit: 2}), []string{"d open", "c open"}; !slices.Equal(got, want) {
		t.Errorf("turns %q, want %q", got, want)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		n := 0
		if err := l.Events(id, 0, func(e journal.Event) bool { n++; return e.TurnID == id }); err != nil || n == 0 {
			t.Errorf("turn %s has %d events, %v", id, n, err)
		}
	}
	if err := l.Events("z", 0, func(journal.Event) bool { return true }); !errors.Is(err, journal.ErrNotFound) {
		t.Error(err)
	}
}

// What a command that died has left open is closed by whoever has its journal
// next, or prunes.
func TestDeadCommands(t *testing.T) {
	dir := t.TempDir()
	j := claim(t, dir)
	begin(t, j, "dead")
	if err := j.Close(); err != nil { // without the turn's end
		t.Fatal(err)
	}
	if got := ids(t, openLog(t, dir), api.Filter{}); !slices.Equal(got, []string{"dead open"}) {
		t.Errorf("turns %q", got)
	}
	for round := range 2 { // the second finds nothing
		done, err := Prune(dir, journal.Retention{})
		if err != nil || len(done.Found) != 1 || done.Found[0].Closed != 1-round || done.Found[0].MovedAside != "" {
			t.Errorf("%+v, %v", done, err)
		}
	}
	if got := ids(t, openLog(t, dir), api.Filter{}); !slices.Equal(got, []string{"dead aborted"}) {
		t.Errorf("turns %q", got)
	}
}

func TestDamageIsTold(t *testing.T) {
	dir := t.TempDir()
	j := claim(t, dir)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(j.Dir(), journal.DatabaseName), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := FoundIn(claim(t, dir)); found.Dir != j.Dir() || found.Damage == nil || filepath.Dir(found.MovedAside) != j.Dir() || found.Closed != 0 {
		t.Errorf("%+v", found)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	if _, err := Prune(dir, journal.Retention{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was pruned: %v", err)
	}
	old, busy := claim(t, dir), claim(t, dir)
	begin(t, old, "a")
	end(t, old, "a")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	done, err := Prune(dir, journal.Retention{MaxAge: time.Nanosecond})
	if err != nil || done.Turns != 1 || !slices.Equal(done.Owned, []string{busy.Dir()}) {
		t.Errorf("%+v, %v", done, err)
	}
	if got := ids(t, openLog(t, dir), api.Filter{}); len(got) != 0 {
		t.Errorf("turns %q are left", got)
	}
}

// A journal that no command has had for a day is pruned, and closed where its owner has died.
func TestTend(t *testing.T) {
	dir := t.TempDir()
	first, second := claim(t, dir), claim(t, dir)
	begin(t, second, "a")
	end(t, second, "a")
	begin(t, first, "b")
	end(t, first, "b")
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	o := journal.Options{Retention: journal.Retention{MaxAge: time.Nanosecond}}
	day := time.Now().Add(-tendAfter - time.Hour)
	for _, idle := range []bool{false, true} {
		for _, one := range []string{first.Dir(), second.Dir()} {
			if idle {
				if err := os.Chtimes(one, day, day); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := Tend(dir, o); err != nil {
			t.Error(err)
		}
		want := []string{"b", "a"}
		if idle {
			want = []string{"b"} // it has an owner
		}
		if got := ids(t, openLog(t, dir), api.Filter{}); len(got) != len(want) {
			t.Errorf("idle %t: turns %q, want %q", idle, got, want)
		}
	}
}

// The bound of the size is for all journals together, and those that hold little leave their room to others.
func TestShare(t *testing.T) {
	held := map[string]int64{"1": 10, "2": 60, "3": 0, "4": 0}
	for _, test := range []struct {
		dir         string
		running     int
		given, want int64
	}{
		{"1", 1, 100, 40},
		{"2", 1, 100, 90},
		{"3", 1, 100, 30},
		{"5", 1, 100, 30},
		{"3", 1, 80, 20},
		{"1", 1, 0, journal.Retention{}.Defaulted().MaxBytes - 60},
		{"1", 1, -1, -1},
		{"2", 3, 100, 70},
		{"3", 3, 400, 110},
		{"3", 100, 400, 100},
	} {
		if r := shareOf(held, test.dir, test.running, journal.Retention{MaxBytes: test.given}); r.MaxBytes != test.want {
			t.Errorf("of %d bytes %s gets %d, want %d", test.given, test.dir, r.MaxBytes, test.want)
		}
	}
	dir := t.TempDir()
	claim(t, dir)
	held, err := heldBytes(filepath.Join(dir, commandsDir))
	if bytes := held[filepath.Join(dir, commandsDir, "1")]; err != nil || len(held) != 1 || bytes == 0 {
		t.Errorf("%v, %v", held, err)
	}
}

// A log follows journals that are there and those that are new.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	first := claim(t, dir)
	begin(t, first, "before")
	l := openLog(t, dir)
	ctx, cancel := context.WithCancel(wait.Context(t))
	seen := make(chan string, 10)
	followed := make(chan error, 1)
	go func() {
		followed <- l.Follow(ctx, journal.FollowOptions{Last: true}, func(e journal.Event) bool {
			seen <- e.TurnID + " " + string(e.Kind)
			return true
		})
	}()
	// Until it follows, what it is shown may be over before it looks.
	for n := 0; len(seen) == 0; n++ {
		id := fmt.Sprint("now", n)
		begin(t, first, id)
		end(t, first, id)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("nothing was followed")
		}
	}
	if got := <-seen; !strings.HasPrefix(got, "now") {
		t.Errorf("saw %q", got)
	}
	second := claim(t, dir)
	begin(t, second, "new")
	for got := ""; got != "new turn_start"; {
		select {
		case got = <-seen:
		case <-ctx.Done():
			t.Fatal("the new journal was not followed")
		}
	}
	cancel()
	if err := <-followed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Of one turn a log follows the events until it ends, wherever it is kept.
func TestFollowOneTurn(t *testing.T) {
	dir := t.TempDir()
	claim(t, dir)
	second := claim(t, dir)
	begin(t, second, "x")
	end(t, second, "x")
	var kinds []api.EventKind
	err := openLog(t, dir).Follow(wait.Context(t), journal.FollowOptions{TurnID: "x"}, func(e journal.Event) bool {
		kinds = append(kinds, e.Kind)
		return true
	})
	if want := []api.EventKind{api.EventTurnStart, api.EventTurnEnd}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("saw %q, want %q; %v", kinds, want, err)
	}
	err = openLog(t, dir).Follow(wait.Context(t), journal.FollowOptions{TurnID: "nosuch"}, func(journal.Event) bool { return true })
	if !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an unknown turn is followed: %v", err)
	}
}

// Where somebody else could exchange them, journals are not kept.
func TestFoldersOfOthers(t *testing.T) {
	dir := t.TempDir()
	claim(t, dir)
	for _, open := range []string{dir, filepath.Join(dir, commandsDir)} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
		if j, err := Claim(dir, journal.Options{}); err == nil {
			t.Errorf("a journal is kept though others can write to %s", open)
			_ = j.Close()
		} else if !strings.Contains(err.Error(), "others can write to") {
			t.Error(err)
		}
		if err := os.Chmod(open, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// What is missing is named: the turn, the call, or only its result.
func TestResultsThatAreNotThere(t *testing.T) {
	dir := t.TempDir()
	first, second := claim(t, dir), claim(t, dir)
	begin(t, first, "other")
	begin(t, second, "a")
	add(t, second, api.Event{Kind: "tool_queued", TurnID: "a", Seq: 2, CallID: "1", Tool: "echo"})
	l := openLog(t, dir)
	for _, test := range []struct{ turnID, callID, want string }{
		{"z", "1", `there is no turn "z"`},
		{"a", "9", `the turn "a" has no call "9"`},
		{"a", "", `the turn "a" has no call ""`},
		{"a", "1", `the call "1" of the turn "a" has no result`},
	} {
		_, err := l.Result(test.turnID, test.callID)
		if !errors.Is(err, journal.ErrNotFound) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}
