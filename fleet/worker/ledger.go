package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/internal/atomicfile"
)

// ledger is the file in which each attempt stands before its tool starts, so that a
// worker's next life knows what the last one has started. It survives the worker's
// process, not its machine: where it does not go back to a life, that is said. The file may
// be there after a crash of the machine, without its last lines.
//
// Its lines are "epoch EPOCH" where a life begins, "boot ID" of the machine in that life,
// "start CALLER LIFE SERIAL" and, in place of lines that were dropped, "forgot".
type ledger struct {
	path, epoch string
	boot        string
	lock, out   *os.File
	lines       int   // in this life
	size        int64 // its end; behind it is at most a piece of a line that found no room
	// earlier is what is known of the lives before this one.
	earlier map[string]*record
	order   []string
}

// record is what a life has started.
type record struct {
	started map[string]bool
	forgot  bool // some of it
}

const (
	// maxEarlier lives are remembered, and at most twice maxLines lines of this one.
	maxEarlier = 8
	maxLines   = 50_000
)

// openLedger reads what earlier lives have left in dir and begins a new one. Only one
// worker may have it open.
func openLedger(dir, epoch string) (*ledger, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("cannot tell a crash of the machine from one of the worker: %w", err)
	}
	return openLedgerOf(dir, epoch, strings.TrimSpace(string(boot)))
}

func openLedgerOf(dir, epoch, boot string) (*ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the worker's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the worker's folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("another worker uses the folder %s: give this one another with --dir", dir)
	}
	l := &ledger{path: filepath.Join(dir, "ledger"), epoch: epoch, boot: boot, lock: lock, earlier: map[string]*record{}}
	if err = l.read(); err == nil {
		err = l.begin("")
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *ledger) close() error {
	if l.out != nil {
		_ = l.out.Close()
	}
	// A child that is being started may have a copy of the descriptor for a moment.
	return errors.Join(syscall.Flock(int(l.lock.Fd()), syscall.LOCK_UN), l.lock.Close())
}

func (l *ledger) read() error {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the worker's ledger: %w", err)
	}
	defer f.Close()
	var now *record
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF { // a line without its end was not written before its start
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the worker's ledger: %w", err)
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case word == "epoch":
			now = &record{started: map[string]bool{}, forgot: true}
			l.earlier[rest], l.order = now, append(l.order, rest)
		case now == nil:
			return fmt.Errorf("the worker's ledger %s begins with %q: remove it, and what earlier lives have started is unknown", l.path, line)
		case word == "boot": // what was written in another one may not all be there
			now.forgot = rest != l.boot
		case word == "start":
			now.started[rest] = true
		default: // forgot, and what only a later release knows
			now.forgot = true
		}
	}
}

// begin replaces the file by one with the newest of the earlier lives, and own of this
// one.
func (l *ledger) begin(own string) error {
	if drop := len(l.order) - maxEarlier; drop > 0 {
		for _, epoch := range l.order[:drop] {
			delete(l.earlier, epoch)
		}
		l.order = l.order[drop:]
	}
	var text strings.Builder
	for _, epoch := range l.order {
		fmt.Fprintf(&text, "epoch %s\nboot %s\n", epoch, l.boot)
		if l.earlier[epoch].forgot {
			text.WriteString("forgot\n")
		}
		for start := range l.earlier[epoch].started {
			fmt.Fprintf(&text, "start %s\n", start)
		}
	}
	fmt.Fprintf(&text, "epoch %s\nboot %s\n%s", l.epoch, l.boot, own)
	if err := atomicfile.Write(l.path, []byte(text.String()), atomicfile.Options{Unsynced: true}); err != nil {
		return fmt.Errorf("cannot write the worker's ledger: %w", err)
	}
	out, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot write the worker's ledger: %w", err)
	}
	if l.out != nil {
		_ = l.out.Close()
	}
	l.out, l.lines, l.size = out, strings.Count(own, "\n"), int64(text.Len())
	return nil
}

// start writes that an attempt is about to start. live are those of this life that are
// still to be known where the file has grown too long.
func (l *ledger) start(name string, live func() []string) error {
	if l.lines >= maxLines {
		own := "forgot\n"
		for _, name := range live() {
			own += "start " + name + "\n"
		}
		if err := l.begin(own); err != nil {
			return err
		}
	}
	line := "start " + name + "\n"
	if _, err := l.out.WriteAt([]byte(line), l.size); err != nil { // the next one takes the place of a piece
		return fmt.Errorf("cannot write the worker's ledger: %w", err)
	}
	l.size += int64(len(line))
	l.lines++
	return nil
}

// of an earlier life, known says whether it would be on record if it had started.
func (l *ledger) of(epoch, name string) (known, started bool) {
	r := l.earlier[epoch]
	if r == nil {
		return false, false
	}
	return r.started[name] || !r.forgot, r.started[name]
}
