package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFullDisk lets a child fill a file system of its own.
func TestFullDisk(t *testing.T) { // not beside tests that lock: until its child is executed it has their locks, too
	if os.Getuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN, to mount a small tmpfs; TestFullDatabase needs nothing")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], t.TempDir())
	cmd.Env = childEnv("full")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.HasSuffix(out, []byte("all kept\n")) {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("needs CAP_SYS_ADMIN, for a mount namespace")
		}
		t.Errorf("error %v:\n%s", err, out)
	}
}

// playFull runs in a mount namespace of its own.
func playFull(dir string) {
	must(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	must(syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=700"))
	ballast := filepath.Join(dir, "ballast")
	must(os.WriteFile(ballast, make([]byte, 2<<20), 0o600))
	j, err := Open(dir, Options{Retention: Retention{MaxBytes: -1}})
	must(err)
	last := fillJournal(j, 1)
	// While it is full nothing goes, and nothing breaks.
	for range 10 {
		if err := j.Append(bulky(last+1), bulky(last+2)); !errors.Is(err, ErrFull) {
			panic(fmt.Sprint("error while full: ", err))
		}
	}
	must(os.Remove(ballast))
	must(j.Append(bulky(last+1), bulky(last+2)))
	last = fillJournal(j, last+3)
	must(j.Close())
	// A full disk holds no room for Open either; what it says must be that.
	if j, err = Open(dir, Options{}); err == nil {
		must(j.Close())
	} else if !errors.Is(err, ErrFull) {
		panic(err)
	}
	must(syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=16m"))
	j, err = Open(dir, Options{})
	must(err)
	if r := j.Report(); r.MovedAside != "" {
		panic(fmt.Sprint("damaged: ", r.Damage))
	}
	must(quickCheck(context.Background(), j.writer.database.conn))
	must(expectBulk(dir, last))
	must(j.Append(bulky(last + 1)))
	must(j.Close())
	// What has ended is read where nothing can be written, too.
	must(syscall.Mount(dir, dir, "", syscall.MS_BIND, ""))
	must(syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
	must(expectBulk(dir, last+1))
	fmt.Println("all kept")
}

// TestFullDatabase limits the database instead of the disk.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{Retention: Retention{MaxBytes: -1}})
	limit := func(pages int) {
		if _, err := j.Prune(t.Context()); err != nil { // run is idle afterwards, so its connection is free
			t.Fatal(err)
		}
		if _, err := j.writer.database.conn.ExecContext(t.Context(), fmt.Sprint("PRAGMA max_page_count = ", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(100)
	last := fillJournal(j, 1)
	small := event("other", 1, "turn_start")
	if err := j.Append(append([]Event{small}, bulky(last+1))...); !errors.Is(err, ErrFull) {
		t.Errorf("error while full: %v", err)
	}
	limit(1000)
	mustAppend(t, j, small)
	mustAppend(t, j, bulky(last+1))
	if err := expectBulk(dir, last+1); err != nil {
		t.Error(err)
	}
	mustClose(t, j)
	if r := mustOpen(t, dir, Options{}).Report(); r.Unclean || r.MovedAside != "" {
		t.Errorf("report %+v", r)
	}
}

// bulky is an event of the one turn that fills.
func bulky(seq int64) Event {
	e := event("bulk", seq, "tool_output")
	e.JSON = append(e.JSON, make([]byte, 20<<10)...)
	return e
}

// fillJournal appends until it is full and returns the last Seq.
func fillJournal(j *Journal, next int64) int64 {
	for {
		err := j.Append(bulky(next))
		if errors.Is(err, ErrFull) {
			return next - 1
		}
		must(err)
		if next++; next > 10_000 {
			panic("bug: never full")
		}
	}
}

func expectBulk(dir string, last int64) error {
	r, err := OpenReader(dir)
	if err != nil {
		return err
	}
	next := int64(1)
	err = r.Events("bulk", 0, func(e Event) bool {
		ok := sameEvent(e, bulky(next))
		next++
		return ok
	})
	if next-1 != last {
		err = errors.Join(err, fmt.Errorf("%d events are there, want %d", next-1, last))
	}
	return errors.Join(err, r.Close())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
