package mcp

import (
	"cmp"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/internal/lazy"
)

// How much of the beginning and of the end of stderr goes into an error. All of it
// goes to the host.
const (
	maxHeadBytes = 1 << 10
	maxTailBytes = 2 << 10
)

// tail passes a server's stderr on and keeps its end, and its beginning: there is the
// reason where a long usage text follows it.
type tail struct {
	by *hearing

	// Guarded by that one's mu. gap: what was between the two is not kept.
	head, kept []byte
	gap        bool
}

// open has what a pipe holds be heard from now on, by who takes its rest and by copy.
func (t *tail) open(from *os.File) error {
	pipe, err := from.SyscallConn()
	if err != nil {
		return err
	}
	t.by.mu.Lock()
	defer t.by.mu.Unlock()
	t.by.pipes[t] = pipe
	return nil
}

// copy takes the pipe to its end.
func (t *tail) copy() {
	t.by.mu.Lock()
	pipe, err := t.by.pipes[t], error(nil)
	t.by.mu.Unlock()
	for pipe != nil && err == nil {
		outer := pipe.Read(func(fd uintptr) bool {
			t.by.mu.Lock()
			defer t.by.mu.Unlock()
			_, err = t.by.read(t, int(fd), readBytes)
			return !errors.Is(err, syscall.EAGAIN)
		})
		err = cmp.Or(outer, err)
	}
	t.by.mu.Lock()
	delete(t.by.pipes, t)
	t.by.mu.Unlock()
}

// keep is for who holds the mu.
func (t *tail) keep(p []byte) {
	n := min(len(p), maxHeadBytes-len(t.head))
	t.head, p = append(t.head, p[:n]...), p[n:]
	t.gap = t.gap || len(t.kept)+len(p) > maxTailBytes
	t.kept = append(t.kept, p[max(0, len(p)-maxTailBytes):]...)
	t.kept = slices.Delete(t.kept, 0, max(0, len(t.kept)-maxTailBytes))
}

// forget is for who holds the mu.
func (t *tail) forget() { t.head, t.kept, t.gap = nil, nil, false }

func (t *tail) text() string {
	t.by.mu.Lock()
	defer t.by.mu.Unlock()
	between := ""
	if t.gap {
		between = "\n[...]\n"
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(t.head)+between+string(t.kept), "\uFFFD"))
}

// tellings look like the reason of a failure, the surest first; beside looks like
// it and is not, as do the flags of a usage text and the stream's own name.
var (
	tellings = []func() *regexp.Regexp{
		lazy.Regexp(`reason: `), // npm's
		lazy.Regexp(`^(?:[A-Za-z_][A-Za-z0-9_.]*)?(?:Error|Exception)\b.*:|^panic: `), // of node, Python, Go
		lazy.Regexp(`(?i)^[^ ]*\b(?:error|fatal)\b`),
		lazy.Regexp(`(?i)error|exception|panic|fatal|cannot|can't`),
		lazy.Regexp(`(?i)usage`),
	}
	beside = lazy.Regexp(`^\s+at |^\s*File "|A complete log of this run|^Node\.js v|^\s*--?[A-Za-z]`)
	stream = lazy.Regexp(`(?i)\bstandard error\b`)
)

// likeliest is the line that looks most like a reason: the last of its kind, else the
// last of all.
func likeliest(lines []string) string {
	for _, telling := range tellings {
		for _, line := range slices.Backward(lines) {
			if telling().MatchString(stream().ReplaceAllString(line, "")) && !beside().MatchString(line) {
				return line
			}
		}
	}
	return lines[len(lines)-1]
}

// evidence is what is kept of stderr as an addition to an error: what looks like the
// reason on the error's own line, for that may be all that is shown, the rest
// below.
func (t *tail) evidence() string {
	text := t.text()
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	line := "; it wrote to stderr: " + strings.TrimSpace(likeliest(lines))
	if len(lines) == 1 {
		return line
	}
	return line + "\nIts stderr:\n" + text
}
