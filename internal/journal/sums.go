package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/atomicfile"
)

const (
	// sumsName is the file with the checksums of a database that was closed.
	sumsName = "journal.sums"
	// chunkBytes is what each of them is over.
	chunkBytes = 1 << 20
	// sumTime bounds how long Close takes for them, checkTime how long Open does
	// for checking: the rest is checked behind it.
	sumTime   = 3 * time.Second
	checkTime = 600 * time.Millisecond
	// maxSumsBytes bounds the file.
	maxSumsBytes = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums are checksums over the files of a database as its last owner left it: SQLite itself sees damage to its structure
// alone.
type sums struct {
	// Closed is what the database says of that moment: one that was put in its place says another.
	Closed int64      `json:"closed"`
	Files  []fileSums `json:"files"`
}

type fileSums struct {
	Suffix string   `json:"suffix"`
	Bytes  int64    `json:"bytes"`
	Chunks []uint32 `json:"chunks"` // as far as there was time
}

// sealed is how sums are stored, with a checksum of their own.
type sealed struct {
	Sum  uint32          `json:"sum"`
	Sums json.RawMessage `json:"sums"`
}

// writeSums sums up what nobody writes to any more.
func writeSums(dir string, closed int64) error {
	s := sums{Closed: closed}
	until := time.Now().Add(sumTime)
	for _, suffix := range []string{"", "-wal"} {
		f, err := openSummed(filepath.Join(dir, DatabaseName+suffix))
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		one, err := sumFile(f, until)
		if err != nil {
			return err
		}
		one.Suffix = suffix
		s.Files = append(s.Files, one)
	}
	raw, err := json.Marshal(s)
	if err == nil {
		raw, err = json.Marshal(sealed{crc32.Checksum(raw, castagnoli), raw})
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, sumsName), raw, atomicfile.Options{Unsynced: true}) // half of it is found out
}

func sumFile(f *os.File, until time.Time) (s fileSums, err error) {
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	s.Bytes = info.Size()
	buf := make([]byte, chunkBytes)
	for at := int64(0); at < s.Bytes && time.Now().Before(until); at += chunkBytes {
		sum, err := sumChunk(f, at, s.Bytes, buf)
		if err != nil {
			return s, err
		}
		s.Chunks = append(s.Chunks, sum)
	}
	return s, nil
}

func sumChunk(f io.ReaderAt, at, size int64, buf []byte) (uint32, error) {
	part := buf[:min(chunkBytes, size-at)]
	if _, err := f.ReadAt(part, at); err != nil {
		return 0, err
	}
	return crc32.Checksum(part, castagnoli), nil
}

// readSums are those of dir, or nil if they cannot be used.
func readSums(dir string) *sums {
	f, err := os.OpenFile(filepath.Join(dir, sumsName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSumsBytes))
	var outer sealed
	var s sums
	if err != nil || json.Unmarshal(raw, &outer) != nil || crc32.Checksum(outer.Sums, castagnoli) != outer.Sum ||
		json.Unmarshal(outer.Sums, &s) != nil {
		return nil
	}
	return &s
}

// dropSums forgets them: what they are over is about to be written to.
func dropSums(dir string) error {
	if err := os.Remove(filepath.Join(dir, sumsName)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// comparison is a check of files by their sums, which can be done in parts.
type comparison struct {
	files []compared
	buf   []byte
	whole bool // there is a sum for every chunk
}

type compared struct {
	fileSums
	file *os.File
	next int // chunk
}

// compare begins a comparison. A file of another size is damaged.
func (s *sums) compare(dir string) (*comparison, error) {
	c := &comparison{buf: make([]byte, chunkBytes), whole: true}
	for _, one := range s.Files {
		f, err := openSummed(filepath.Join(dir, DatabaseName+one.Suffix))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if info.Size() != one.Bytes {
			return nil, fmt.Errorf("%w: %s has %d bytes, and had %d", ErrCorrupt, f.Name(), info.Size(), one.Bytes)
		}
		c.whole = c.whole && int64(len(one.Chunks))*chunkBytes >= one.Bytes
		c.files = append(c.files, compared{fileSums: one, file: f})
	}
	return c, nil
}

// goOn compares until it is done, or stop says so.
func (c *comparison) goOn(stop func() bool) (done bool, err error) {
	for i := range c.files {
		f := &c.files[i]
		for ; f.next < len(f.Chunks); f.next++ {
			if stop() {
				return false, nil
			}
			at := int64(f.next) * chunkBytes
			sum, err := sumChunk(f.file, at, f.Bytes, c.buf)
			if err != nil {
				return false, fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
			if sum != f.Chunks[f.next] {
				return false, fmt.Errorf("%w: %s is not as it was left, in the megabyte at byte %d", ErrCorrupt, f.file.Name(), at)
			}
		}
	}
	return true, nil
}

// summed are the files of databases that this process has read itself. They stay open: to close one would drop the locks
// that SQLite may hold on it (POSIX locks belong to the process). There are as many as databases.
var summed struct {
	mu    sync.Mutex
	files map[[2]uint64]*os.File
}

func openSummed(name string) (*os.File, error) {
	summed.mu.Lock()
	defer summed.mu.Unlock()
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a plain file", name)
	}
	id := fileID(info)
	if f := summed.files[id]; f != nil {
		return f, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if summed.files == nil {
		summed.files = map[[2]uint64]*os.File{}
	}
	summed.files[fileID(info)] = f
	return f, nil
}

func fileID(info os.FileInfo) [2]uint64 {
	s := info.Sys().(*syscall.Stat_t)
	return [2]uint64{uint64(s.Dev), s.Ino}
}

// rowSum is the checksum of a row, over all that is read of it.
func rowSum(numbers []int64, texts ...string) int64 {
	var sum uint32
	add := func(p []byte) { sum = crc32.Update(sum, castagnoli, p) }
	for _, n := range numbers {
		add(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
	for _, text := range texts {
		add(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
		add([]byte(text))
	}
	return int64(sum)
}

// sum is the event's, at its place.
func (e *Event) sum(pos int64) int64 {
	return rowSum([]int64{pos, e.Seq, e.Time.UnixNano()}, e.TurnID, string(e.Kind), e.CallID, e.Tool, string(e.JSON))
}
