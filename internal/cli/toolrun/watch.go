package toolrun

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	// pollEvery is how soon a new build is noticed; a file must have been left
	// alone for as long before it is run, so that none is run half written.
	pollEvery = 200 * time.Millisecond
)

// version tells a build of a binary from another.
type version struct {
	modified time.Time
	bytes    int64
	inode    uint64
}

func versionOf(info fs.FileInfo) version {
	v := version{modified: info.ModTime(), bytes: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		v.inode = stat.Ino
	}
	return v
}

// Watcher waits for new builds of a binary.
type Watcher struct {
	path string
	seen version
}

// Watch takes the binary as it is now for the one that is known.
func Watch(path string) *Watcher {
	w := &Watcher{path: path}
	w.seen, _ = w.look()
	return w
}

// look is false while there is nothing that could be run.
func (w *Watcher) look() (version, bool) {
	info, err := os.Stat(w.path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || info.Size() == 0 {
		return version{}, false
	}
	return versionOf(info), true
}

// Next waits for a build that is not the known one, and takes it for the known
// one. It is false if stop gets something first.
func (w *Watcher) Next(stop <-chan os.Signal) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var candidate version
	for {
		select {
		case <-stop:
			return false
		case <-tick.C:
		}
		now, there := w.look()
		switch {
		case !there || now == w.seen:
			candidate = version{}
		case now == candidate:
			w.seen = now
			return true
		default:
			candidate = now
		}
	}
}
