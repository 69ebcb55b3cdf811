package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/toolhost/toolhost/plugin"
)

// database is one connection: its limits are the connection's own.
type database struct {
	db   *sql.DB
	conn *sql.Conn
}

// open refuses what is not a database with better words than SQLite has.
func open(ctx context.Context, path string) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	db, err := connect(ctx, path, "mode=ro")
	// A database in WAL mode wants files beside it, which cannot be made in a
	// folder that is read-only. Without a log there is nothing but the file.
	cannot := code(err) == sqlite3.SQLITE_CANTOPEN
	if cannot && !exists(path+"-wal") {
		db, err = connect(ctx, path, "mode=ro&immutable=1")
	}
	switch {
	case cannot && err != nil:
		return nil, fmt.Errorf("cannot open the database %s: %w: its log, %s-wal, cannot be read in a read-only folder while nobody has it open: close it properly (PRAGMA wal_checkpoint), or grant a copy", path, err, filepath.Base(path))
	case err != nil:
		return nil, fmt.Errorf("cannot open the database %s: %w", path, err)
	}
	return db, nil
}

func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no database at %s, or the tool may not see it", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a database but a folder or device", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	header := make([]byte, len(fileHeader))
	if n, err := io.ReadFull(f, header); err != io.EOF && !bytes.Equal(header[:n], []byte(fileHeader)) {
		return fmt.Errorf("%s is not an SQLite database: it does not begin like one", path)
	}
	return nil
}

// fileHeader begins every database but an empty one, see
// https://sqlite.org/fileformat.html.
const fileHeader = "SQLite format 3\x00"

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// connect opens a path and reads from it, so that what is wrong shows here.
func connect(ctx context.Context, path, mode string) (*database, error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + mode + "&_defensive=1&_busy_timeout=1000&_query_only=1&_pragma=trusted_schema(0)&_error_rc=1"
	db := sql.OpenDB(connector{dsn})
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	d := &database{db, conn}
	for id, limit := range map[int]int{sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_LENGTH: maxValueBytes} {
		if _, err := sqlite.Limit(conn, id, limit); err != nil {
			d.close()
			return nil, err
		}
	}
	if _, err := d.tables(ctx); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *database) close() {
	_ = d.conn.Close()
	_ = d.db.Close()
}

// ask hands every row of a query to toolhost_row. So the whole query is one step
// of SQLite, which ctx interrupts; the driver lets it interrupt nothing between
// rows that a program takes one by one. It also makes any statement but a query
// invalid SQL.
func (d *database) ask(ctx context.Context, query string, values []any, rows int, out *plugin.Output) (Summary, error) {
	query = strings.TrimRight(query, "; \t\r\n")
	columns, err := d.columns(query)
	if err != nil {
		return Summary{}, d.explain(ctx, err)
	}
	if len(columns) == 0 {
		return Summary{}, errNoQuery
	}
	p, done := newPrinter(out, columns, rows)
	defer done()
	names := make([]string, len(columns))
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	list := strings.Join(names, ",")
	wrapped := fmt.Sprintf("WITH toolhost_result(%s) AS (\n%s\n) SELECT toolhost_row(%d,%s) FROM toolhost_result", list, query, p.id, list)
	err = d.conn.QueryRowContext(ctx, wrapped, values...).Scan(new(any))
	if flushed := p.flush(); flushed != nil {
		return Summary{}, flushed
	}
	switch {
	case p.failed != nil:
		return Summary{}, p.failed
	case ctx.Err() != nil && !p.truncated:
		return Summary{}, context.Cause(ctx)
	case err != nil && !p.truncated:
		return Summary{}, d.explain(ctx, err)
	}
	return Summary{Columns: p.names, Rows: p.rows, Truncated: p.truncated}, nil
}

var errNoQuery = errors.New("the statement gives no rows: ask one SELECT, WITH or VALUES; nothing can be changed")

// columns compiles the query's first statement without running it.
func (d *database) columns(query string) (names []string, err error) {
	err = d.conn.Raw(func(conn any) error {
		infos, err := conn.(interface {
			ColumnInfo(string) ([]sqlite.ColumnInfo, error)
		}).ColumnInfo(query)
		for _, info := range infos {
			names = append(names, info.Name)
		}
		return err
	})
	return names, err
}

const maxTables = 100

// tables are the names of the first tables and views.
func (d *database) tables(ctx context.Context) ([]string, error) {
	rows, err := d.conn.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name LIMIT ?", maxTables)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// explain adds what helps to ask better.
func (d *database) explain(ctx context.Context, err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "no such table"):
		names, tablesErr := d.tables(ctx)
		if tablesErr != nil {
			return err
		}
		return fmt.Errorf("%w: the tables are %q", err, names)
	case strings.Contains(text, "no such column"):
		return fmt.Errorf("%w: pragma_table_info('table') has a table's columns", err)
	case strings.Contains(text, "syntax error"):
		return fmt.Errorf("%w: ask one SELECT, WITH or VALUES, and nothing behind it", err)
	}
	return err
}

// code is SQLite's primary result code, 0 for none.
func code(err error) int {
	if failed, ok := errors.AsType[*sqlite.Error](err); ok {
		return failed.Code() & 0xff
	}
	return 0
}
