package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"
)

// busyTimeoutMs bounds the wait for a lock in the database. In WAL mode readers and the writer only ever wait for each
// other while a log is recovered or the last connection closes.
const busyTimeoutMs = 5000

// dsn names the database of dir for the driver.
func dsn(dir, query string) string {
	u := url.URL{Scheme: "file", Path: filepath.Join(dir, DatabaseName), RawQuery: fmt.Sprintf("_busy_timeout=%d%s", busyTimeoutMs, query)}
	return u.String()
}

// writerPragmas change nothing in a database that has been written to. The log is cut back to journal_size_limit bytes
// when it begins anew.
const writerPragmas = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA journal_size_limit = 8388608;
PRAGMA wal_autocheckpoint = 0;
`

// database is the owner's connection, and one that writes the log to the file.
type database struct {
	db, log *sql.DB
	conn    *sql.Conn
	rest    *unchecked
}

// openDatabase opens the database of dir for writing, making or migrating it, and checks what there is time for (see
// BenchmarkCheck). Damage is answered with ErrCorrupt. The caller closes what is returned, with an error too.
func openDatabase(ctx context.Context, dir string, unclean bool, steps []string) (*database, error) {
	if err := registerVFS(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(dir, "&vfs="+logVFS))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	d := &database{db: db}
	if d.log, err = sql.Open("sqlite", dsn(dir, "")); err != nil {
		return d, err
	}
	d.log.SetMaxOpenConns(1)
	if err = d.setUp(ctx, dir, unclean, steps); err != nil {
		return d, classify(dir, err)
	}
	return d, nil
}

func (d *database) setUp(ctx context.Context, dir string, unclean bool, steps []string) error {
	var err error
	if d.conn, err = d.db.Conn(ctx); err != nil {
		return err
	}
	id, err := readIdentity(ctx, d.conn)
	if err != nil {
		return err
	}
	if err := id.check(len(steps)); err != nil {
		return err
	}
	if !id.fresh() {
		if d.rest, err = d.check(ctx, dir, id, unclean, int(id.version) < len(steps)); err != nil {
			return err
		}
	} else if _, err := d.conn.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil { // counts only before the first table
		return err
	}
	if err := dropSums(dir); err != nil {
		return err
	}
	if _, err := d.conn.ExecContext(ctx, writerPragmas); err != nil {
		return err
	}
	return migrate(ctx, d.conn, id.version, steps)
}

func (d *database) close() error {
	if d == nil {
		return nil
	}
	var err error
	if d.log != nil {
		err = d.log.Close()
	}
	if d.conn != nil {
		err = errors.Join(err, d.conn.Close())
	}
	return errors.Join(err, d.db.Close())
}

// checkpoint writes what it can of the log to the file. It tells whether some of what was there when it began is not in
// the file yet.
func (d *database) checkpoint() (owed bool, err error) {
	var busy, inLog, written int64
	err = d.log.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &inLog, &written)
	return err != nil || busy != 0 || written < inLog, err
}

// quickCheck reads the whole database.
func quickCheck(ctx context.Context, db queryer) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", ErrCorrupt, verdict)
	}
	return nil
}

func asideSuffix(now time.Time) string { return ".corrupt-" + now.UTC().Format("20060102T150405Z") }

// openOrReplace opens the database; a damaged one it moves aside, reports, and starts anew.
func openOrReplace(ctx context.Context, dir string, unclean bool, steps []string, now time.Time) (*database, Report, error) {
	report := Report{}
	aside := asideSuffix(now)
	if report.Damage = condemned(dir); report.Damage == nil {
		report.Damage = emptied(dir)
	}
	report.Missing = report.Damage == nil && missing(dir)
	var err error
	if report.Damage != nil {
		report.MovedAside, err = moveAside(dir, aside)
	} else {
		err = pardon(dir)
	}
	if err != nil {
		return nil, report, err
	}
	d, err := openTight(ctx, dir, unclean, steps)
	if err == nil || !errors.Is(err, ErrCorrupt) {
		report.Checked = unclean && err == nil && d.rest == nil
		return d, report, errors.Join(err, closeIf(err != nil, d))
	}
	report.Damage = err
	// Renamed before it is closed: closing deletes the log, by its old name.
	report.MovedAside, err = moveAside(dir, aside)
	_ = d.close() // it is damaged: its errors tell nothing new
	if err != nil {
		return nil, report, err
	}
	d, err = openTight(ctx, dir, false, steps)
	return d, report, errors.Join(err, closeIf(err != nil, d))
}

func openTight(ctx context.Context, dir string, unclean bool, steps []string) (*database, error) {
	if err := tighten(dir); err != nil {
		if isFull(err) {
			err = fmt.Errorf("%w: %w", ErrFull, err)
		}
		return nil, err
	}
	return openDatabase(ctx, dir, unclean, steps)
}

func closeIf(failed bool, d *database) error {
	if !failed {
		return nil
	}
	return d.close()
}
