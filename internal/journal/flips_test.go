package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/api"
)

// content is all that a journal tells: turns, calls, events and results.
func content(t *testing.T, dir string) (all []string, err error) {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer mustClose(t, r)
	turns, err := r.Turns(api.Filter{Limit: MaxLimit})
	if err != nil {
		return nil, err
	}
	calls, err := r.Calls(api.Filter{Limit: MaxLimit})
	if err != nil {
		return nil, err
	}
	all = append(all, fmt.Sprintf("%+v", turns), fmt.Sprintf("%+v", calls))
	for _, one := range turns {
		err = errors.Join(err, r.Events(one.TurnID, 0, func(e Event) bool {
			all = append(all, fmt.Sprintf("%+v", e))
			return true
		}))
	}
	for _, one := range calls {
		if one.HasResult {
			result, resultErr := r.Result(one.TurnID, one.CallID)
			all, err = append(all, string(result)), errors.Join(err, resultErr)
		}
	}
	return all, err
}

// variety leaves a closed journal with every kind of page, and what it tells.
func variety(t *testing.T, dir string) (data []byte, told []string) {
	t.Helper()
	j := mustOpen(t, dir, Options{})
	for n := range 60 {
		list := wholeTurn(fmt.Sprint("turn-", n), "shell", []api.Status{"ok", "timeout"}[n%2])
		list[3].Outcome.Result = bytes.Repeat([]byte(`{"x":1}`), 1+n*n)
		mustAppend(t, j, list...)
	}
	mustClose(t, j)
	data, err := os.ReadFile(filepath.Join(dir, DatabaseName))
	if err != nil {
		t.Fatal(err)
	}
	told, err = content(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return data, told
}

// flipped is where each flip of the tests is: all over the file, and in the head of every page; in a fifth of these places
// without make soak, and in ten with -short.
func flipped(size int) (bits []int) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		bits = append(bits, random.IntN(8*size))
	}
	if testing.Short() {
		return bits[:10]
	}
	for page := 0; page < size; page += 4096 {
		bits = append(bits, 8*(page+random.IntN(12))+random.IntN(8))
	}
	if os.Getenv("TOOLHOST_SOAK_RUNS") != "" {
		return bits
	}
	for i := range len(bits) / 5 {
		bits[i] = bits[5*i]
	}
	return bits[:len(bits)/5]
}

// A flipped bit in a journal that nobody had open is found, wherever it is, and what is left of it is set aside as it is.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	data, told := variety(t, from)
	sums, err := os.ReadFile(filepath.Join(from, sumsName))
	if err != nil {
		t.Fatal(err)
	}
	silent := 0
	for _, bit := range flipped(len(data)) {
		dir := t.TempDir()
		damaged := bytes.Clone(data)
		damaged[bit/8] ^= 1 << (bit % 8)
		for name, raw := range map[string][]byte{DatabaseName: damaged, sumsName: sums, lockName: nil} {
			if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		j, err := Open(dir, Options{})
		if err != nil { // found, too: it is taken for no journal, or for a newer one
			continue
		}
		report := j.Report()
		mustClose(t, j)
		if report.MovedAside == "" {
			silent++
			if now, err := content(t, dir); err != nil || fmt.Sprint(now) != fmt.Sprint(told) {
				t.Errorf("bit %d of byte %d (page %d) is not found, and what is told is another thing: %v", bit%8, bit/8, bit/8/4096, err)
			}
			continue
		}
		if kept, err := os.ReadFile(report.MovedAside); err != nil || !bytes.Equal(kept, damaged) {
			t.Errorf("byte %d: what is set aside is not what was found, %v", bit/8, err)
		}
	}
	if silent > 2 { // in the number of the clean end
		t.Errorf("%d flips were not found", silent)
	}
}

// Without checksums over the file, as after a crash, what is replayed is what was appended, or an error.
func TestFlippedBitsAfterACrash(t *testing.T) {
	t.Parallel()
	data, told := variety(t, t.TempDir())
	appended := map[string]bool{}
	for _, one := range told[2:] {
		appended[one] = true
	}
	for _, bit := range flipped(len(data)) {
		dir := t.TempDir()
		damaged := bytes.Clone(data)
		damaged[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(filepath.Join(dir, DatabaseName), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		now, err := content(t, dir)
		if err != nil || len(now) < 2 {
			continue
		}
		for _, one := range now[2:] {
			if !appended[one] {
				t.Errorf("byte %d: told %.300s", bit/8, one)
				break
			}
		}
	}
}

// A database that was put in the place of another one is not damage, even if that one was.
func TestRestored(t *testing.T) {
	t.Parallel()
	for _, damaged := range []bool{false, true} {
		dir, backup := t.TempDir(), t.TempDir()
		j := mustOpen(t, dir, Options{})
		mustAppend(t, j, wholeTurn("old", "shell", "ok")...)
		if _, err := j.writer.database.conn.ExecContext(t.Context(), "VACUUM INTO ?", filepath.Join(backup, DatabaseName)); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, j, wholeTurn("new", "shell", "ok")...)
		if damaged {
			j.condemn(ErrCorrupt)
		}
		mustClose(t, j)
		raw, err := os.ReadFile(filepath.Join(backup, DatabaseName))
		if err == nil {
			name := filepath.Join(dir, DatabaseName)
			err = errors.Join(os.WriteFile(name, raw, 0o600), os.Chtimes(name, start, start))
		}
		if err != nil {
			t.Fatal(err)
		}
		if report := mustOpen(t, dir, Options{}).Report(); report.MovedAside != "" {
			t.Errorf("%+v", report)
		}
		if _, err := content(t, dir); err != nil {
			t.Error(err)
		}
		if !absent(filepath.Join(dir, condemnedName)) {
			t.Error("the restored database may be taken for the damaged one")
		}
	}
}

// What Open has no time for is checked behind it: then nothing more is written, and the next owner begins anew.
func TestCheckedBehindOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, _ := variety(t, dir)
	s := readSums(dir)
	middle := len(data) / 2
	data[middle+bytes.Index(data[middle:], []byte(`{"x":1}{"x":1}`))] ^= 4 // in what a row holds
	if err := os.WriteFile(filepath.Join(dir, DatabaseName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dropSums(dir); err != nil { // Open looks at the structure alone
		t.Fatal(err)
	}
	var log bytes.Buffer
	j := mustOpen(t, dir, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	left, err := s.compare(dir)
	if err == nil && j.Report().MovedAside == "" {
		err = j.beginCheck(&unchecked{left: left}, len(migrations))
	}
	if err != nil || j.Report().MovedAside != "" {
		t.Fatalf("%v, %+v", err, j.Report())
	}
	j.checking.Wait()
	if err := j.Append(event("late", 1, "x")); !errors.Is(err, ErrCorrupt) {
		t.Errorf("it is written to: %v", err)
	}
	if _, err := j.Prune(context.Background()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("it is pruned: %v", err)
	}
	mustClose(t, j)
	next := mustOpen(t, dir, Options{})
	if report := next.Report(); report.MovedAside == "" || !errors.Is(report.Damage, ErrCorrupt) {
		t.Errorf("the next owner: %+v", report)
	}
	mustAppend(t, next, event("new", 1, "x"))
	if !bytes.Contains(log.Bytes(), []byte("nothing is written to it any more")) {
		t.Errorf("log: %s", log.String())
	}
}

// The file stays as it is while it is checked behind Open, whatever is appended.
func TestAppendWhileChecking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	variety(t, dir)
	s := readSums(dir)
	j := mustOpen(t, dir, Options{Retention: Retention{MaxAge: time.Hour, MaxBytes: 1 << 20}})
	left, err := s.compare(dir)
	if err != nil {
		t.Skip("pruning was faster than the test") // it shrinks the file
	}
	r, snapshot, err := guard(t.Context(), dir, len(migrations))
	if err != nil {
		t.Fatal(err)
	}
	for seq := range int64(60) {
		mustAppend(t, j, Event{TurnID: "more", Seq: seq + 1, Time: start, Kind: "x", JSON: make([]byte, 100_000)})
	}
	j.checkOn(t.Context(), &unchecked{left: left}, r, snapshot)
	mustAppend(t, j, event("still", 1, "x"))
}

// A journal of before there were checksums is read and written on.
func TestWithoutSums(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeFirst(t, dir, `INSERT INTO turns (id, turn_id, started) VALUES (1, 'old', 1);
		INSERT INTO events VALUES (1, 1, 1, 1, 'turn_start', '', '', '{}');`)
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, event("old", 2, api.EventTurnEnd))
	if got := collect(t, mustRead(t, dir), "old", 0); len(got) != 2 || string(got[0].JSON) != "{}" || j.Report().MovedAside != "" {
		t.Errorf("%+v, %+v", got, j.Report())
	}
}
