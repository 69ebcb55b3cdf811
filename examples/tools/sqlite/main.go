// Command sqlite is a tool that asks a SQLite database file one query and
// streams the rows as they come, one JSON object a line, so that a call which
// is cut short keeps those found by then.
//
// The file is opened read-only, no other can be attached, and only a query
// (SELECT, WITH or VALUES) is taken. Rows, their bytes and the query's time are
// bounded: it is interrupted at the call's end. A BLOB is shown as
// {"base64": "..."}.
//
// Of a database in WAL mode, grant the folder: in the file alone the latest
// changes, in the -wal file beside it, may be missing.
package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/toolhost/toolhost/plugin"
)

const (
	defaultRows = 1000
	maxRows     = 100_000
	// maxBytes bounds the rows of a call; maxValueBytes a value within SQLite.
	maxBytes      = 4 << 20
	maxValueBytes = 16 << 20
)

func main() { plugin.Serve(newTool()) }

func newTool() plugin.Registered {
	return plugin.NewTool(plugin.Tool{
		Name:  "sqlite",
		Title: "Query a SQLite database",
		Description: "Ask a SQLite database file a query (SELECT, WITH or VALUES), read-only. Rows are JSON objects, one a line. " +
			"The tables are in sqlite_schema, a table's columns in pragma_table_info('name').",
		ReadOnly:   true,
		Idempotent: true,
		Timeout:    30 * time.Second,
	}, query)
}

// Arguments are a query and where to ask it.
type Arguments struct {
	Database   string `json:"database" jsonschema:"path of the database file"`
	Query      string `json:"query" jsonschema:"one SELECT, WITH or VALUES statement of SQLite's SQL"`
	Parameters []any  `json:"parameters,omitempty" jsonschema:"values of the query's ? in order: strings, numbers, booleans or null"`
	MaxRows    int    `json:"max_rows,omitempty" jsonschema:"stop after so many rows; default 1000, at most 100000"`
}

// Summary says what the rows are. Truncated says that there may be more: Rows
// reached max_rows, or the tool's own limit of 4 MiB.
type Summary struct {
	Columns   []string `json:"columns"`
	Rows      int      `json:"rows"`
	Truncated bool     `json:"truncated,omitempty"`
}

func query(ctx context.Context, in Arguments, out *plugin.Output) (Summary, error) {
	values, err := in.check()
	if err != nil {
		return Summary{}, err
	}
	db, err := open(ctx, in.Database)
	if err != nil {
		return Summary{}, err
	}
	defer db.close()
	return db.ask(ctx, in.Query, values, in.MaxRows, out)
}

// check fills in defaults and returns the parameters as SQLite knows values.
func (in *Arguments) check() ([]any, error) {
	if in.MaxRows < 0 || in.MaxRows > maxRows {
		return nil, fmt.Errorf("max_rows %d is out of range: give 1 to %d", in.MaxRows, maxRows)
	}
	in.MaxRows = cmp.Or(in.MaxRows, defaultRows)
	values := make([]any, len(in.Parameters))
	for i, parameter := range in.Parameters {
		switch value := parameter.(type) {
		case float64:
			values[i] = value
			// JSON has one kind of number, SQLite two.
			if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
				values[i] = int64(value)
			}
		case nil, string, bool:
			values[i] = value
		default:
			return nil, fmt.Errorf("parameter %d is an array or an object: give a string, a number, a boolean or null", i+1)
		}
	}
	return values, nil
}
