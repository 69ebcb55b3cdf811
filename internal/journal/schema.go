package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// applicationID marks a database as a journal of toolhost: "THJ1", see SQLite's PRAGMA application_id.
const applicationID = 0x54484a31

// migrations take the database from version i to version i+1 (PRAGMA user_version), each in one transaction.
// Released ones never change: add to the end.
var migrations = []string{schema1, schema2, schema3, schema4, schema5, schema6}

// A turn that is being pruned has no row in turns any more but one in pruning, so readers see it whole or not at all.
// Ids of turns and events are never used again: a mark is written where they are deleted (schema6 for turns). Results are
// apart from calls so that lists stay quick.
const schema1 = `
CREATE TABLE turns (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	turn_id TEXT NOT NULL UNIQUE,
	started INTEGER NOT NULL,            -- times are nanoseconds since 1970
	ended   INTEGER,
	aborted INTEGER NOT NULL DEFAULT 0,
	reason  TEXT NOT NULL DEFAULT ''
);
CREATE INDEX turns_by_end ON turns(ended);
CREATE TABLE events (
	pos     INTEGER PRIMARY KEY,
	turn    INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	time    INTEGER NOT NULL,
	kind    TEXT NOT NULL,
	call_id TEXT NOT NULL,
	tool    TEXT NOT NULL,
	json    BLOB NOT NULL,
	UNIQUE (turn, seq)
);
CREATE TABLE calls (
	id         INTEGER PRIMARY KEY,
	turn       INTEGER NOT NULL,
	call_id    TEXT NOT NULL,
	tool       TEXT NOT NULL,
	status     TEXT NOT NULL DEFAULT 'open',
	reason     TEXT NOT NULL DEFAULT '',
	queued     INTEGER NOT NULL,
	started    INTEGER,
	ended      INTEGER,
	elapsed_ms INTEGER NOT NULL DEFAULT 0,
	UNIQUE (turn, call_id)
);
CREATE TABLE results (
	call INTEGER PRIMARY KEY,            -- calls.id
	json BLOB NOT NULL
);
CREATE TABLE pruning (
	turn INTEGER PRIMARY KEY             -- turns.id
);
CREATE TABLE mark (
	pos INTEGER NOT NULL                 -- events.pos of the last event when some were last deleted
);
INSERT INTO mark VALUES (0);
PRAGMA application_id = 0x54484a31;
`

// Rows have a checksum over what is read of them; those of before have none. Each clean end has a number.
const schema2 = `
ALTER TABLE events ADD COLUMN sum INTEGER;
ALTER TABLE results ADD COLUMN sum INTEGER;
ALTER TABLE mark ADD COLUMN closed INTEGER NOT NULL DEFAULT 0;
`

// A turn belongs to who began it; those of before have nobody's name. Records of audit are a chain: each has the hash of
// itself and of the one before. What was dropped from its beginning is told by its anchor.
const schema3 = `
ALTER TABLE turns ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX turns_by_owner ON turns(owner, id);
CREATE TABLE audit (
	seq  INTEGER PRIMARY KEY,
	json BLOB NOT NULL,
	hash BLOB NOT NULL
);
CREATE TABLE audit_anchor (
	seq  INTEGER NOT NULL,               -- of the last record that was dropped
	hash BLOB NOT NULL
);
INSERT INTO audit_anchor VALUES (0, zeroblob(32));
`

// What a turn holds is known when it has ended; those of before count for nothing.
const schema4 = `
ALTER TABLE turns ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
`

// Lists are by time, and so are the indexes that their filters want. Calls that end well
// are in none that their end would change.
const schema5 = `
CREATE INDEX turns_by_start ON turns(started);
DROP INDEX turns_by_owner;
CREATE INDEX turns_by_owner ON turns(owner, started);
CREATE INDEX calls_by_time ON calls(queued);
CREATE INDEX calls_by_tool ON calls(tool, queued);
CREATE INDEX calls_failed ON calls(status, queued) WHERE status NOT IN ('ok', 'open');
`

// AUTOINCREMENT had each commit that begins a turn write one more page. Only the table's text changes, which leaves its rows
// where they are (https://www.sqlite.org/lang_altertable.html, section 7).
const schema6 = `
ALTER TABLE mark ADD COLUMN turn INTEGER NOT NULL DEFAULT 0; -- the highest turns.id when some were last deleted
UPDATE mark SET turn = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'turns'), 0);
DELETE FROM sqlite_sequence;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ' AUTOINCREMENT', '') WHERE name = 'turns';
PRAGMA writable_schema = RESET;
`

// identity is what a database says of itself.
type identity struct {
	application, version int64
	tables               int64
}

func readIdentity(ctx context.Context, db queryer) (id identity, err error) {
	for query, into := range map[string]*int64{
		"PRAGMA application_id":              &id.application,
		"PRAGMA user_version":                &id.version,
		"SELECT count(*) FROM sqlite_schema": &id.tables,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(into); err != nil {
			return id, err
		}
	}
	return id, nil
}

// queryer is what *sql.DB, *sql.Conn and *sql.Tx have in common.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// fresh says that nobody has written to the database.
func (id identity) fresh() bool { return id == identity{} }

// check refuses what is not a journal, or one of a later version than known.
func (id identity) check(known int) error {
	switch {
	case !id.fresh() && id.application != applicationID:
		return errors.New("the database is not a journal of toolhost: move it away")
	case id.version > int64(known):
		return fmt.Errorf("%w: it has version %d, this toolhost knows up to %d: use the newer toolhost, or another state directory",
			ErrNewer, id.version, known)
	}
	return nil
}

// migrate brings a database up to the version len(steps).
func migrate(ctx context.Context, conn *sql.Conn, from int64, steps []string) error {
	for version := int(from); version < len(steps); version++ {
		script := fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA user_version = %d;\nCOMMIT;", steps[version], version+1)
		if _, err := conn.ExecContext(ctx, script); err != nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK") // fails where SQLite has done it itself
			return fmt.Errorf("cannot bring the database from version %d to %d: %w", version, version+1, err)
		}
	}
	return nil
}
