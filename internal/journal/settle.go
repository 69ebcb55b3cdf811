package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
)

// How often, and for how many times, a reader looks whether the owner has brought the database what is in the redo log.
const (
	redoLookEvery = 2 * time.Millisecond
	maxRedoLooks  = 500
)

// settle has the database of dir have what the redo log holds now: its owner brings it there, or this process does where
// that has died. Where neither can, what is read lacks it.
func settle(dir string) {
	file, err := os.Open(filepath.Join(dir, redoName))
	if err != nil { // mostly there is none
		return
	}
	defer file.Close()
	head, _ := readRedoHead(file)
	end, _ := head.scan(file, func([]byte) error { return nil })
	if end == head.from || !errors.Is(adopt(dir), ErrOwned) {
		return
	}
	for range maxRedoLooks {
		if now, ok := readRedoHead(file); ok && (now.generation != head.generation || now.from >= end) {
			return
		}
		time.Sleep(redoLookEvery)
	}
}

// adopt brings the database of an owner that has died what is in the redo log. A damaged one it leaves to the next owner.
func adopt(dir string) error {
	l, err := holdLock(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	d, err := openTight(ctx, dir, true, migrations)
	if err == nil {
		err = adoptInto(ctx, dir, d)
	}
	return errors.Join(err, d.close(), l.release(false))
}

func adoptInto(ctx context.Context, dir string, d *database) error {
	w, err := newWriter(ctx, dir, d, Options{Now: time.Now, Logger: hclog.NewNullLogger()})
	if err != nil {
		return errors.Join(err, w.do.close())
	}
	r, err := openRedo(dir, false)
	if r == nil || err != nil {
		return errors.Join(err, w.do.close())
	}
	if err = w.replay(r); err == nil {
		err = r.clear()
	}
	return errors.Join(err, r.close(), w.do.close())
}
