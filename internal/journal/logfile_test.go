package journal

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// counted counts the writes to logs whose methods it has.
var counted struct {
	plain, methods sqlite3.Tsqlite3_io_methods
	writes         atomic.Int64
}

func countWrite(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	counted.writes.Add(1)
	return method[readFunc](counted.plain.FxWrite)(tls, file, data, n, offset)
}

// countWrites has the logs that are open now be written with a count.
func countWrites() {
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, l := range own.logs {
		counted.plain, counted.methods = *l.plain, *l.plain
		counted.methods.FxWrite = address(countWrite)
		l.plain = &counted.methods
	}
}

func TestACommitIsOneWrite(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	mustAppend(t, j, singleCall("first")...) // from here on the log is known
	countWrites()
	for n := range 20 {
		before := counted.writes.Load()
		mustAppend(t, j, singleCall(fmt.Sprint(n))...)
		if writes := counted.writes.Load() - before; writes != 1 {
			t.Errorf("commit %d was %d writes", n, writes)
		}
	}
}

// TestLogsThroughBothVFS makes transactions that SQLite must write out before they end, and then reads and writes over,
// and has another connection, through SQLite's own VFS, read what is committed.
func TestLogsThroughBothVFS(t *testing.T) {
	dir := t.TempDir()
	if err := registerVFS(); err != nil {
		t.Fatal(err)
	}
	writer, reader := connectTo(t, dir, "&vfs="+logVFS), connectTo(t, dir, "")
	must := func(query string, args ...any) {
		t.Helper()
		if _, err := writer.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	must("PRAGMA auto_vacuum = INCREMENTAL")
	must(writerPragmas + "PRAGMA cache_size = 8; CREATE TABLE rows (id INTEGER PRIMARY KEY, value BLOB); CREATE INDEX by_value ON rows(value)")
	random := rand.New(rand.NewPCG(1, 2))
	committed := map[int64][]byte{}
	for n := range 80 {
		must("BEGIN IMMEDIATE")
		now := maps.Clone(committed)
		for range random.IntN(60) {
			id := random.Int64N(200)
			switch random.IntN(4) {
			case 0:
				must("DELETE FROM rows WHERE id = ?", id)
				delete(now, id)
			default:
				now[id] = make([]byte, random.IntN(6000))
				for i := range now[id] {
					now[id][i] = byte(random.Uint32())
				}
				must("INSERT OR REPLACE INTO rows VALUES (?, ?)", id, now[id])
			}
		}
		if random.IntN(3) == 0 {
			must("ROLLBACK")
		} else {
			must("COMMIT")
			committed = now
		}
		if n%10 == 0 {
			must("PRAGMA wal_checkpoint(PASSIVE)") // from then on the log begins anew
		}
		compareRows(t, reader, committed)
		if n%4 == 0 {
			compareRows(t, connectTo(t, crashed(t, dir), ""), committed)
		}
	}
}

// crashed is what a crash would leave of the database: what others know of its log is only in the file.
func crashed(t *testing.T, dir string) (copied string) {
	t.Helper()
	copied = t.TempDir()
	for _, name := range []string{DatabaseName, DatabaseName + "-wal"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

func connectTo(t *testing.T, dir, query string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(dir, query))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func compareRows(t *testing.T, conn *sql.Conn, want map[int64][]byte) {
	t.Helper()
	if err := quickCheck(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.QueryContext(t.Context(), "SELECT id, value FROM rows")
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	err = each(rows, func() error {
		var id int64
		var value []byte
		if err := rows.Scan(&id, &value); err != nil {
			return err
		}
		if !slices.Equal(value, want[id]) {
			return fmt.Errorf("row %d has %d bytes that are not the ones committed last", id, len(value))
		}
		got++
		return nil
	})
	if err != nil || got != len(want) {
		t.Fatalf("read %d rows of %d: %v", got, len(want), err)
	}
}
