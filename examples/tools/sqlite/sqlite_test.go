package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// database makes a file and runs statements in it.
func makeDatabase(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b?c#d%20.db")
	db := openForWriting(t, path)
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func openForWriting(t *testing.T, path string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connector{"file:" + strings.NewReplacer("?", "%3f", "#", "%23", "%", "%25").Replace(path)})
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// call runs the tool as a host would, with arguments and result as JSON.
func call(t *testing.T, ctx context.Context, in Arguments, sent *transcript) (Summary, error) {
	t.Helper()
	arguments, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := newTool().Run(ctx, arguments, sent.output())
	var summary Summary
	if err == nil {
		err = json.Unmarshal(raw, &summary)
	}
	return summary, err
}

func ask(t *testing.T, path, query string, parameters ...any) (string, Summary, error) {
	t.Helper()
	var sent transcript
	summary, err := call(t, t.Context(), Arguments{Database: path, Query: query, Parameters: parameters}, &sent)
	return sent.text.String(), summary, err
}

func TestRows(t *testing.T) {
	path := makeDatabase(t,
		`CREATE TABLE p(id INTEGER PRIMARY KEY, name TEXT, born DATE, pic BLOB, w REAL)`,
		`INSERT INTO p VALUES (9223372036854775807, 'Ada <é>', '1815-12-10', x'00ff', 1.5), (2, CAST(x'61ff62' AS TEXT), NULL, NULL, 9e999)`,
		`CREATE VIEW v AS SELECT name FROM p`,
	)
	for query, want := range map[string]string{
		"SELECT * FROM p ORDER BY id DESC": `{"id":9223372036854775807,"name":"Ada <é>","born":"1815-12-10","pic":{"base64":"AP8="},"w":1.5}
{"id":2,"name":"a` + "\uFFFD" + `b","born":null,"pic":null,"w":"+Inf"}
`,
		"select count(*) from v;\n":                                  "{\"count(*)\":2}\n",
		`SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS "x""y" -- and so on`:  "{\"a\":1,\"a_2\":2,\"a_2_2\":3,\"x\\\"y\":4}\n",
		"WITH t(a) AS (VALUES (1), (2)) SELECT a FROM t WHERE a > 1": "{\"a\":2}\n",
		"VALUES (1, 'x')": "{\"column1\":1,\"column2\":\"x\"}\n",
		"SELECT name FROM pragma_table_info('p') LIMIT 2":                          "{\"name\":\"id\"}\n{\"name\":\"name\"}\n",
		"SELECT id FROM p WHERE 0":                                                 "",
		"SELECT 1 AS rows, 2 AS toolhost_result FROM p AS toolhost_result LIMIT 1": "{\"rows\":1,\"toolhost_result\":2}\n",
	} {
		text, summary, err := ask(t, path, query)
		if err != nil || text != want || summary.Rows != strings.Count(want, "\n") || summary.Truncated || len(summary.Columns) == 0 {
			t.Errorf("%s: %s, %+v, %v, want %s", query, text, summary, err, want)
		}
	}
}

func TestParameters(t *testing.T) {
	path := makeDatabase(t, `CREATE TABLE t(a)`)
	text, _, err := ask(t, path, "SELECT ? AS a, typeof(?) AS b, ? AS c, ? AS d, ?2 AS e", "x' OR 1", 5, 2.5, nil)
	if want := "{\"a\":\"x' OR 1\",\"b\":\"integer\",\"c\":2.5,\"d\":null,\"e\":5}\n"; err != nil || text != want {
		t.Errorf("%s, %v", text, err)
	}
	if _, _, err := ask(t, path, "SELECT ?", []int{1}); err == nil || !strings.Contains(err.Error(), "parameter 1") {
		t.Errorf("%v", err)
	}
	if _, _, err := ask(t, path, "SELECT ?, ?", 1); err == nil {
		t.Error("a missing one is taken")
	}
}

// Rows come in the order that the query gives them, though they go through an
// aggregate function.
func TestOrder(t *testing.T) {
	path := makeDatabase(t, `CREATE TABLE t(a)`, `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5000) INSERT INTO t SELECT x * 7919 % 5003 FROM c`)
	for query, compare := range map[string]func(a, b int) int{
		"SELECT a FROM t ORDER BY a":                              func(a, b int) int { return a - b },
		"SELECT a FROM t ORDER BY a DESC":                         func(a, b int) int { return b - a },
		"SELECT a FROM t WHERE a > 5 ORDER BY -a LIMIT 900":       func(a, b int) int { return b - a },
		"SELECT DISTINCT a FROM t ORDER BY a % 2 = 2, a":          func(a, b int) int { return a - b },
		"SELECT a FROM t UNION SELECT a + 6000 FROM t ORDER BY a": func(a, b int) int { return a - b },
	} {
		var sent transcript
		summary, err := call(t, t.Context(), Arguments{Database: path, Query: query, MaxRows: maxRows}, &sent)
		var got []int
		for line := range strings.Lines(sent.text.String()) {
			var row struct{ A int }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			got = append(got, row.A)
		}
		if err != nil || len(got) < 900 || len(got) != summary.Rows || !slices.IsSortedFunc(got, compare) {
			t.Errorf("%s: %d rows, %v", query, len(got), err)
		}
	}
}

const endless = `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) `

func TestBounds(t *testing.T) {
	path := makeDatabase(t, `CREATE TABLE t(a)`)
	var sent transcript
	summary, err := call(t, t.Context(), Arguments{Database: path, Query: endless + "SELECT x FROM c", MaxRows: 2}, &sent)
	if want := "{\"x\":1}\n{\"x\":2}\n"; err != nil || sent.text.String() != want || summary.Rows != 2 || !summary.Truncated {
		t.Errorf("rows: %q, %+v, %v", sent.text.String(), summary, err)
	}
	text, summary, err := ask(t, path, endless+"SELECT x, hex(zeroblob(50000)) FROM c")
	if err != nil || len(text) > maxBytes || len(text) < maxBytes/2 || strings.Count(text, "\n") != summary.Rows || !summary.Truncated {
		t.Errorf("bytes: %d, %+v, %v", len(text), summary, err)
	}
	if text, _, err = ask(t, path, "SELECT hex(zeroblob(5000000))"); err == nil || !strings.Contains(err.Error(), "substr") || text != "" {
		t.Errorf("a long row: %d bytes, %v", len(text), err)
	}
	if _, _, err = ask(t, path, "SELECT length(zeroblob(20000000))"); err == nil || !strings.Contains(err.Error(), "too big") {
		t.Errorf("a long value: %v", err)
	}
	for _, rows := range []int{-1, maxRows + 1} {
		if _, err := call(t, t.Context(), Arguments{Database: path, Query: "SELECT 1", MaxRows: rows}, &transcript{}); err == nil {
			t.Errorf("max_rows %d is taken", rows)
		}
	}
}

// Nothing that a statement can do changes the file or makes another.
func TestNothingIsWritten(t *testing.T) {
	path := makeDatabase(t, `CREATE TABLE t(a)`, `INSERT INTO t VALUES (1)`)
	before := state(t, path)
	for _, statement := range []string{
		"INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (2) RETURNING a", "UPDATE t SET a = 2 RETURNING a", "DELETE FROM t", "DROP TABLE t", "CREATE TABLE u(a)", "CREATE TEMP TABLE u AS SELECT 1", "REPLACE INTO t VALUES (1)",
		"ATTACH '%s.other' AS o", "VACUUM", "VACUUM INTO '%s.other'", "REINDEX", "ANALYZE", "BEGIN IMMEDIATE",
		"PRAGMA query_only = 0", "PRAGMA journal_mode = WAL", "PRAGMA user_version = 5", "PRAGMA writable_schema = 1", "SELECT load_extension('x')",
		"SELECT 1; DELETE FROM t", "SELECT 1) SELECT 1; DELETE FROM t; --", "SELECT toolhost_row(1, 2)", "", ";", "-- nothing", "SELECT 1 /* no end",
		"WITH d AS (SELECT 1) DELETE FROM t", "WITH d AS (SELECT 1) INSERT INTO t SELECT 1 FROM d RETURNING a", "EXPLAIN SELECT 1",
	} {
		if strings.Contains(statement, "%s") {
			statement = fmt.Sprintf(statement, path)
		}
		if text, _, err := ask(t, path, statement); err == nil {
			t.Errorf("%s: gave %q", statement, text)
		}
	}
	if after := state(t, path); after != before {
		t.Errorf("%s, before %s", after, before)
	}
}

// The function that takes the rows is for no query, whatever arguments it gives.
func TestOwnFunction(t *testing.T) {
	path := makeDatabase(t, `CREATE TABLE t(a)`)
	for _, query := range []string{"SELECT toolhost_row()", "SELECT toolhost_row('x')", "SELECT toolhost_row(1)", "SELECT toolhost_row(1, 'x')", "SELECT toolhost_row(1, 2, 3)"} {
		if text, _, err := ask(t, path, query); err == nil || !strings.Contains(err.Error(), "not for queries") {
			t.Errorf("%s: %q, %v", query, text, err)
		}
	}
}

// state is what a file holds and which files are beside it.
func state(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	beside, err := filepath.Glob(filepath.Dir(path) + "/*")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x %q", sha256.Sum256(content), beside)
}

func TestMistakesAreExplained(t *testing.T) {
	path := makeDatabase(t, `CREATE TABLE fruit(a)`, `CREATE VIEW shown AS SELECT 1`)
	dir := filepath.Dir(path)
	text, fifo, cut := filepath.Join(dir, "text"), filepath.Join(dir, "fifo"), filepath.Join(dir, "cut")
	for name, content := range map[string]string{text: "name,age\n", cut: fileHeader + "garbage"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, query, want string }{
		{path, "SELECT * FROM vegetables", `["fruit" "shown"]`},
		{path, "SELECT b FROM fruit", "pragma_table_info"},
		{path, "SELEC 1", "SELECT, WITH or VALUES"},
		{path, "DELETE FROM fruit", "nothing can be changed"},
		{path + "x", "SELECT 1", "no database at"},
		{dir, "SELECT 1", "folder or device"},
		{fifo, "SELECT 1", "folder or device"},
		{text, "SELECT 1", "not an SQLite database"},
		{cut, "SELECT 1", "cannot open"},
		{":memory:", "SELECT 1", "no database at"},
	} {
		if _, _, err := ask(t, test.path, test.query); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s of %s: %v, want %s", test.query, test.path, err, test.want)
		}
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, err := ask(t, empty, "SELECT 1 AS a"); err != nil || got != "{\"a\":1}\n" {
		t.Errorf("an empty file is an empty database: %q, %v", got, err)
	}
}

// hangs bounds what should take a moment.
const hangs = time.Minute

// A query that finds one row and then nothing for ever ends with its context,
// and the row has been shown before.
func TestInterrupt(t *testing.T) {
	path := makeDatabase(t, `CREATE TABLE t(a)`)
	for name, query := range map[string]string{
		"behind a row": "SELECT 'first' AS a UNION ALL SELECT * FROM (" + endless + "SELECT count(*) FROM c)",
		"many rows":    endless + "SELECT x FROM c WHERE x = 1 OR x < 0",
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the user has had enough")
		sent := transcript{onText: func() { cancel(cause) }}
		done := make(chan error, 1)
		go func() {
			_, err := call(t, ctx, Arguments{Database: path, Query: query}, &sent)
			done <- err
		}()
		select {
		case err := <-done:
			if !errors.Is(err, cause) || strings.Count(sent.text.String(), "\n") != 1 {
				t.Errorf("%s: %v, %q", name, err, sent.text.String())
			}
		case <-time.After(hangs):
			t.Fatalf("%s: not interrupted", name)
		}
	}
}

// A database in WAL mode, as somebody is writing it: what is committed counts.
func TestWriteAheadLog(t *testing.T) {
	path := makeDatabase(t)
	writer := openForWriting(t, path)
	for _, statement := range []string{"PRAGMA journal_mode = WAL", "CREATE TABLE t(a)", "INSERT INTO t VALUES (1)", "BEGIN", "INSERT INTO t VALUES (2)"} {
		if _, err := writer.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if !exists(path + "-wal") {
		t.Fatal("there is no log")
	}
	if text, _, err := ask(t, path, "SELECT a FROM t"); err != nil || text != "{\"a\":1}\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestCallsAtOnce(t *testing.T) {
	path := makeDatabase(t, `CREATE TABLE t(a)`)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			var sent transcript
			_, err := call(t, t.Context(), Arguments{Database: path, Query: "SELECT ? AS a", Parameters: []any{i}}, &sent)
			if want := fmt.Sprintf("{\"a\":%d}\n", i); err != nil || sent.text.String() != want {
				t.Errorf("%q, %v, want %q", sent.text.String(), err, want)
			}
		})
	}
	group.Wait()
}
