package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// settler has a database hold what was appended before it is read by another process than its owner's.
type settler struct {
	dir string
	db  *sql.DB // the reader's

	mu sync.Mutex
	// vain is what could not be brought to the database: nobody waits for that again.
	vain tail
	// lacking is why what was read may lack what was appended last.
	lacking error
}

// tail is what a redo log holds.
type tail struct {
	redoHead
	end int64
}

const (
	redoLookEvery = 2 * time.Millisecond
	maxRedoLooks  = 1000
	// adoptEvery is how often, in looks, a reader tries whether the owner has died meanwhile.
	adoptEvery = 25
)

// settle waits until the database has what the redo log holds now: its owner brings it there, or this process does where
// that has died. Where neither can, what is read lacks it.
func (s *settler) settle() {
	file, err := os.OpenFile(filepath.Join(s.dir, redoName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil { // usually it does not exist
		return
	}
	defer file.Close()
	now := tailOf(file)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.end == now.from || now == s.vain {
		return
	}
	if s.lacking = s.bring(file, now); s.lacking != nil {
		s.vain = now
	}
}

// tailOf reads a redo log. Its header is read once more where it was just being written.
func tailOf(file *os.File) tail {
	head, ok := readRedoHead(file)
	for tries := 0; !ok && tries < 3; tries++ {
		head, ok = readRedoHead(file)
	}
	end, _, _ := head.scan(file, func([]byte) error { return nil })
	return tail{head, end}
}

// bring waits until the database has the records.
func (s *settler) bring(file *os.File, t tail) error {
	for looks := range maxRedoLooks {
		if now, ok := readRedoHead(file); ok && (now.generation != t.generation || now.from >= t.end) {
			return nil
		}
		if looks%adoptEvery == 0 {
			if err := s.adopt(); !errors.Is(err, errHeld) {
				return err
			}
		}
		time.Sleep(redoLookEvery)
	}
	return errors.New("its owner takes long to bring it to the database: ask again")
}

// adopt brings the database of an owner that has died what is in the redo log. It fails with errHeld where there is an
// owner, or another reader does so. It writes to no database that is damaged, another user's, or of another version.
func (s *settler) adopt() error {
	if err := errors.Join(checkDir(s.dir), checkDirOwner(s.dir), checkFiles(s.dir)); err != nil {
		return err
	}
	r, err := openRedo(s.dir, false)
	if r == nil || err != nil {
		return err
	}
	moved := ""
	if err = s.adoptable(); err == nil {
		moved, err = replayInto(s.dir, r)
	}
	if err != nil {
		return errors.Join(err, r.leave())
	}
	if moved != "" {
		err = fmt.Errorf("the redo log was damaged, or does not fit the database, and is moved aside to %s", moved)
	}
	return errors.Join(err, r.clear(), r.remove())
}

func (s *settler) adoptable() error {
	if err := condemned(s.dir); err != nil {
		return err
	}
	id, err := readIdentity(context.Background(), s.db)
	switch {
	case err != nil:
		return err
	case emptied(s.dir) != nil:
		return ErrCorrupt
	case id.version != int64(len(migrations)):
		return errors.New("the database is of another version")
	}
	return nil
}

func replayInto(dir string, r *redo) (moved string, err error) {
	ctx := context.Background()
	d, err := openTight(ctx, dir, true, migrations)
	if err != nil {
		return "", errors.Join(err, d.close())
	}
	w, err := newWriter(ctx, dir, d, Options{Now: time.Now, Logger: hclog.NewNullLogger()})
	if err == nil {
		moved, err = w.replay(r)
	}
	return moved, errors.Join(err, w.close())
}
