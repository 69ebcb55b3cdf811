package journal

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// logVFS is SQLite's own VFS, but that the frames which a commit adds to the log are one write: SQLite makes two of each
// frame, which are half of what a commit takes.
const logVFS = "toolhost-journal"

const (
	logHeaderBytes = 32
	// A frame is a header and a page (https://www.sqlite.org/fileformat2.html, section 4.1).
	frameHeaderBytes = 24
	// maxHeldBytes is how much waits for a commit's end. SQLite's own VFS writes less than 128 KiB at once.
	maxHeldBytes = 96 << 10
)

// own is the VFS, whose logs have the methods of logMethods.
var own struct {
	sqlite3.Tsqlite3_vfs
	plain      openFunc
	methods    sync.Once
	logMethods sqlite3.Tsqlite3_io_methods

	mu   sync.Mutex
	logs map[uintptr]*logFile // by the address of SQLite's file
}

// Methods of SQLite's.
type (
	openFunc     func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	readFunc     func(tls *libc.TLS, file, data uintptr, n int32, at int64) int32 // and of writing
	truncateFunc func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     func(tls *libc.TLS, file uintptr, flags int32) int32
	sizeFunc     func(tls *libc.TLS, file, size uintptr) int32
	closeFunc    func(tls *libc.TLS, file uintptr) int32
)

// registerVFS makes logVFS known to SQLite.
var registerVFS = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	base := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if base == 0 {
		return fmt.Errorf("SQLite has no VFS")
	}
	name, err := libc.CString(logVFS)
	if err != nil {
		return err
	}
	own.Tsqlite3_vfs, own.logs = *(*sqlite3.Tsqlite3_vfs)(at(base)), map[uintptr]*logFile{}
	own.plain = method[openFunc](own.FxOpen)
	own.FzName, own.FxOpen = name, address(openFile)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&own.Tsqlite3_vfs)), 0); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("cannot register SQLite's VFS %s: error %d", logVFS, rc)
	}
	return nil
})

// at is SQLite's memory, which Go's collector does not know. Inlined it makes go1.26's compiler fail.
//
//go:noinline
func at(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// method makes a function of its address, and address is the reverse, for functions of a package.
func method[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{address})) }

func address(function any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&function))[1] }

func openFile(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	rc := own.plain(tls, vfs, name, file, flags, out)
	if rc != sqlite3.SQLITE_OK || flags&sqlite3.SQLITE_OPEN_WAL == 0 {
		return rc
	}
	opened := (*sqlite3.Tsqlite3_file)(at(file))
	l := &logFile{file: file, plain: (*sqlite3.Tsqlite3_io_methods)(at(opened.FpMethods))}
	own.methods.Do(func() {
		m := *l.plain
		m.FxClose, m.FxRead, m.FxWrite = address(closeLog), address(readLog), address(writeLog)
		m.FxTruncate, m.FxSync, m.FxFileSize = address(truncateLog), address(syncLog), address(sizeOfLog)
		own.logMethods = m
	})
	opened.FpMethods = uintptr(unsafe.Pointer(&own.logMethods))
	own.mu.Lock()
	defer own.mu.Unlock()
	own.logs[file] = l
	return rc
}

func logOf(file uintptr) *logFile {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.logs[file]
}

// logFile is a connection's log. What waits is of a transaction that is not committed: nobody else reads it, and all that
// this connection does to the file comes behind it.
type logFile struct {
	file   uintptr
	plain  *sqlite3.Tsqlite3_io_methods
	next   int64 // where the next frame begins if it only adds to the log; 0 if that is not known
	held   []byte
	heldAt int64
	headed bool  // held ends with a header, whose page comes next
	last   bool  // which is the commit's last one
	headAt int64 // of the header that was written last, without waiting
}

// write holds what adds frames to the log, until the last one of a commit.
func (l *logFile) write(tls *libc.TLS, data uintptr, n int32, offset int64) int32 {
	bytes := unsafe.Slice((*byte)(at(data)), n)
	switch {
	case l.headed && offset == l.next+frameHeaderBytes:
		l.held, l.headed = append(l.held, bytes...), false
		l.next = offset + int64(n)
		if !l.last && len(l.held) < maxHeldBytes {
			return sqlite3.SQLITE_OK
		}
		return l.flush(tls)
	case !l.headed && n == frameHeaderBytes && offset == l.next:
		if len(l.held) == 0 {
			l.heldAt = offset
		}
		l.held, l.headed, l.last = append(l.held, bytes...), true, binary.BigEndian.Uint32(bytes[4:]) != 0
		return sqlite3.SQLITE_OK
	}
	rc := l.flush(tls)
	if rc == sqlite3.SQLITE_OK {
		if rc = method[readFunc](l.plain.FxWrite)(tls, l.file, data, n, offset); rc == sqlite3.SQLITE_OK {
			l.follow(n, offset)
		}
	}
	return rc
}

// follow learns where the next frame begins from what was written without waiting.
func (l *logFile) follow(n int32, offset int64) {
	end := offset + int64(n)
	switch {
	case offset == 0 && n == logHeaderBytes, l.headAt > 0 && offset == l.headAt+frameHeaderBytes:
		l.next = end
	case end > l.next:
		l.next = 0
	}
	l.headAt = 0
	if n == frameHeaderBytes {
		l.headAt = offset
	}
}

// flush writes what waits. What cannot be written fails the transaction.
func (l *logFile) flush(tls *libc.TLS) int32 {
	if len(l.held) == 0 {
		return sqlite3.SQLITE_OK
	}
	rc := method[readFunc](l.plain.FxWrite)(tls, l.file, uintptr(unsafe.Pointer(unsafe.SliceData(l.held))), int32(len(l.held)), l.heldAt)
	runtime.KeepAlive(l.held)
	if l.held = l.held[:0]; rc != sqlite3.SQLITE_OK || l.headed {
		l.next, l.headed = 0, false
	}
	return rc
}

func writeLog(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	return logOf(file).write(tls, data, n, offset)
}

func readLog(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	l := logOf(file)
	if rc := l.flush(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return method[readFunc](l.plain.FxRead)(tls, file, data, n, offset)
}

func truncateLog(tls *libc.TLS, file uintptr, size int64) int32 {
	l := logOf(file)
	if rc := l.flush(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return method[truncateFunc](l.plain.FxTruncate)(tls, file, size)
}

func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	l := logOf(file)
	if rc := l.flush(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return method[syncFunc](l.plain.FxSync)(tls, file, flags)
}

func sizeOfLog(tls *libc.TLS, file, size uintptr) int32 {
	l := logOf(file)
	if rc := l.flush(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return method[sizeFunc](l.plain.FxFileSize)(tls, file, size)
}

// closeLog drops what waits: it was never committed.
func closeLog(tls *libc.TLS, file uintptr) int32 {
	own.mu.Lock()
	l := own.logs[file]
	delete(own.logs, file)
	own.mu.Unlock()
	return method[closeFunc](l.plain.FxClose)(tls, file)
}
