package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const redoName = "journal.redo"

// redo is a file of appends that the database may lack: a header, and records one behind the other, from the first that
// may be missing on. All are of the header's generation: those of an older one are left over, and do not count.
//
//	header: checksum of what follows (CRC-32C), generation, where the first record begins; 4, 8 and 8 bytes
//	record: length of the payload, checksum of generation and payload, generation; 4, 4 and 8 bytes; then the payload
//
// Numbers are little-endian.
type redo struct {
	file *os.File
	head redoHead
	end  int64 // where the next record begins
}

type redoHead struct {
	generation uint64
	from       int64
}

const (
	redoHeadBytes, recordHeadBytes = 20, 16
	// redoBytes is how large the file is from the beginning, so that no disk is too full for a record.
	redoBytes = 8 << 20
	// redoRoom is what must be free on the disk beside it: the database needs room as well, and where it has none an
	// append must fail.
	redoRoom = 16 << 20
	// maxLag bounds what the database may lack.
	maxLag = 1 << 20
)

// openRedo opens the file of dir and holds its lock, as its owner, or a reader in the place of one that has died, does.
// It makes the file if make says so; without one it returns nil.
func openRedo(dir string, make bool) (*redo, error) {
	flags := os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	if make {
		flags |= os.O_CREATE
	}
	for {
		file, err := os.OpenFile(filepath.Join(dir, redoName), flags, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		current, err := holdRedo(file)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if current {
			r := &redo{file: file}
			r.head, _ = readRedoHead(file)
			return r, nil
		}
		_ = file.Close()
	}
}

// errHeld is why the redo log's lock cannot be had.
var errHeld = errors.New("the redo log is in use")

// awaitRedo is openRedo for an owner: a reader that has it is waited for.
func awaitRedo(dir string, make bool) (r *redo, err error) {
	for looks := 0; looks < maxRedoLooks; looks++ {
		if r, err = openRedo(dir, make); !errors.Is(err, errHeld) {
			return r, err
		}
		time.Sleep(redoLookEvery)
	}
	return r, err
}

// holdRedo locks the file. It is not current if another has removed it meanwhile.
func holdRedo(file *os.File) (current bool, err error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a plain file (%v): remove it", file.Name(), info.Mode().Type())
	}
	if err == nil {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errHeld
	}
	if err == nil {
		err = file.Chmod(0o600)
	}
	if err != nil {
		return false, err
	}
	now, err := os.Lstat(file.Name())
	return err == nil && os.SameFile(info, now), nil
}

// readRedoHead says that there are no records where it finds no header, or one that is just being written.
func readRedoHead(file io.ReaderAt) (head redoHead, ok bool) {
	var raw [redoHeadBytes]byte
	if _, err := file.ReadAt(raw[:], 0); err != nil {
		return redoHead{}, false
	}
	head.generation, head.from = binary.LittleEndian.Uint64(raw[4:]), int64(binary.LittleEndian.Uint64(raw[12:]))
	ok = crc32.Checksum(raw[4:], castagnoli) == binary.LittleEndian.Uint32(raw[:]) && head.from >= redoHeadBytes
	if !ok {
		return redoHead{}, false
	}
	return head, true
}

func (r *redo) writeHead(head redoHead) error {
	var raw [redoHeadBytes]byte
	binary.LittleEndian.PutUint64(raw[4:], head.generation)
	binary.LittleEndian.PutUint64(raw[12:], uint64(head.from))
	binary.LittleEndian.PutUint32(raw[:], crc32.Checksum(raw[4:], castagnoli))
	if _, err := r.file.WriteAt(raw[:], 0); err != nil {
		return err
	}
	r.head = head
	return nil
}

// begin makes the log an empty one of redoBytes.
func (r *redo) begin() error {
	r.head.generation = rand.Uint64() // what clients had put into the file can be no record
	if err := errors.Join(r.file.Truncate(0), r.allocate()); err != nil {
		return err
	}
	return r.clear()
}

func (r *redo) allocate() error {
	err := syscall.Fallocate(int(r.file.Fd()), 0, 0, redoBytes)
	for err == syscall.EINTR {
		err = syscall.Fallocate(int(r.file.Fd()), 0, 0, redoBytes)
	}
	if errors.Is(err, syscall.EOPNOTSUPP) { // then its disk can be too full, which fails an append
		return r.file.Truncate(redoBytes)
	}
	return err
}

// clear drops all records.
func (r *redo) clear() error {
	err := r.writeHead(redoHead{r.head.generation + 1, redoHeadBytes})
	if err == nil {
		r.end = redoHeadBytes
	}
	return err
}

// drop drops the records before one: the database has them.
func (r *redo) drop(before int64) error {
	return r.writeHead(redoHead{r.head.generation, before})
}

// hasRoom says whether a record of so many bytes may be added.
func (r *redo) hasRoom(bytes int) bool {
	end := r.end + int64(bytes)
	var disk syscall.Statfs_t
	return end <= redoBytes && end-r.head.from <= maxLag &&
		syscall.Fstatfs(int(r.file.Fd()), &disk) == nil && int64(disk.Bavail)*disk.Bsize >= redoRoom
}

// newRecord is a request as a record, without its head.
func newRecord(r *request) []byte {
	const fields = 64 // an event's, but for its bytes
	b := make([]byte, recordHeadBytes, recordHeadBytes+r.bytes+int64(len(r.events)*fields))
	return appendEvents(b, r.events)
}

// add writes a record, whose head it fills in.
func (r *redo) add(record []byte) error {
	payload := record[recordHeadBytes:]
	binary.LittleEndian.PutUint32(record, uint32(len(payload)))
	binary.LittleEndian.PutUint32(record[4:], recordSum(r.head.generation, payload))
	binary.LittleEndian.PutUint64(record[8:], r.head.generation)
	_, err := r.file.WriteAt(record, r.end)
	if err == nil {
		r.end += int64(len(record))
	}
	return err
}

func recordSum(generation uint64, payload []byte) uint32 {
	sum := crc32.Checksum(binary.LittleEndian.AppendUint64(nil, generation), castagnoli)
	return crc32.Update(sum, castagnoli, payload)
}

// scan gives the payloads of a log from its header's first record on, and says where the last one ends. Where the owner
// was killed as it wrote one, that is not there. damaged says that the log is otherwise not as it left it: the intact
// records behind damage are given as well.
func (h redoHead) scan(file io.ReaderAt, yield func(payload []byte) error) (end int64, damaged bool, err error) {
	if h.from < redoHeadBytes { // it has no header
		return h.from, false, nil
	}
	raw := make([]byte, maxLag)
	n, _ := file.ReadAt(raw, h.from)
	raw = raw[:n]
	generation := binary.LittleEndian.AppendUint64(nil, h.generation)
	for at := 0; ; {
		payload := h.record(raw[at:])
		if payload == nil {
			behind := h.next(raw[at:], generation)
			if behind < 0 {
				return h.from + int64(at), damaged, nil
			}
			at, damaged = at+behind, true
			continue
		}
		at += recordHeadBytes + len(payload)
		if err := yield(payload); err != nil {
			return h.from + int64(at), damaged, err
		}
	}
}

// record is the payload of the record with which raw begins, or nil if that is damaged or not there.
func (h redoHead) record(raw []byte) []byte {
	if len(raw) < recordHeadBytes || binary.LittleEndian.Uint64(raw[8:]) != h.generation {
		return nil
	}
	n := uint64(binary.LittleEndian.Uint32(raw))
	if n == 0 || n > uint64(len(raw)-recordHeadBytes) {
		return nil
	}
	payload := raw[recordHeadBytes : recordHeadBytes+n]
	if recordSum(h.generation, payload) != binary.LittleEndian.Uint32(raw[4:]) {
		return nil
	}
	return payload
}

// next is where the first record begins behind the beginning of raw, or -1.
func (h redoHead) next(raw, generation []byte) int {
	const before = 8 // bytes of a record's head
	for at := before + 1; at <= len(raw); at++ {
		found := bytes.Index(raw[at:], generation)
		if found < 0 {
			break
		}
		at += found
		if h.record(raw[at-before:]) != nil {
			return at - before
		}
	}
	return -1
}

// damaged says that the file is not as any owner leaves it, whenever it dies.
func (r *redo) damaged() bool {
	info, err := r.file.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	var raw, zero [redoHeadBytes]byte
	_, _ = r.file.ReadAt(raw[:], 0)
	return info.Size() != redoBytes || r.head == redoHead{} && raw != zero
}

// setAside gives the file another name, and goes on with an empty one.
func (r *redo) setAside(now time.Time) (name string, err error) {
	path := r.file.Name()
	name = path + asideSuffix(now)
	if err = os.Rename(path, name); err != nil {
		return "", err
	}
	fresh, err := openRedo(filepath.Dir(path), true)
	if err != nil {
		return "", err
	}
	_ = r.file.Close()
	*r = *fresh
	return name, nil
}

// close removes the file if no record is left in it.
func (r *redo) close() error {
	if r.end == redoHeadBytes {
		return r.remove()
	}
	return r.leave()
}

// leave leaves the file, which may be nil, as it is.
func (r *redo) leave() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}

func (r *redo) remove() error {
	if r == nil {
		return nil
	}
	own, err := r.file.Stat()
	if now, missing := os.Lstat(r.file.Name()); err == nil && missing == nil && os.SameFile(own, now) { // or it is another owner's
		err = os.Remove(r.file.Name())
	}
	return errors.Join(err, r.file.Close())
}
