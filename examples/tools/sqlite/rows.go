package main

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/toolhost/toolhost/plugin"
)

const (
	// A batch of rows is sent when it has flushBytes or is flushInterval old: few
	// messages for many rows, little lost by a kill.
	flushBytes    = 32 << 10
	flushInterval = 50 * time.Millisecond
)

// connector opens connections that know toolhost_row.
type connector struct{ dsn string }

func (c connector) Connect(context.Context) (driver.Conn, error) { return rowDriver().Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return rowDriver() }

// rowDriver is one for all calls: SQLite keeps what is registered for ever.
var rowDriver = sync.OnceValue(func() *sqlite.Driver {
	d := &sqlite.Driver{}
	d.MustRegisterFunction("toolhost_row", &sqlite.FunctionImpl{
		NArgs:         -1,
		MakeAggregate: func(sqlite.FunctionContext) (sqlite.AggregateFunction, error) { return rowFunction{}, nil },
	})
	return d
})

// printers of the calls that run, by the first argument of toolhost_row.
var printers struct {
	sync.Mutex
	byID map[int64]*printer
}

// rowFunction is an aggregate function that prints its rows.
type rowFunction struct{}

func (rowFunction) Step(_ *sqlite.FunctionContext, values []driver.Value) error {
	p := printerOf(values)
	if p == nil {
		return errors.New("toolhost_row is not for queries")
	}
	return p.print(values[1:])
}

// printerOf is nil for arguments that are not the tool's own.
func printerOf(values []driver.Value) *printer {
	if len(values) == 0 {
		return nil
	}
	id, _ := values[0].(int64)
	printers.Lock()
	defer printers.Unlock()
	if p := printers.byID[id]; p != nil && len(values) == len(p.keys)+1 {
		return p
	}
	return nil
}

func (rowFunction) WindowInverse(*sqlite.FunctionContext, []driver.Value) error { return nil }
func (rowFunction) WindowValue(*sqlite.FunctionContext) (driver.Value, error)   { return nil, nil }
func (rowFunction) Final(*sqlite.FunctionContext)                               {}

// printer streams rows as lines of JSON.
type printer struct {
	id      int64
	out     *plugin.Output
	names   []string
	keys    [][]byte // names in JSON
	maxRows int

	rows, bytes int
	truncated   bool
	failed      error

	mu    sync.Mutex // guards what follows, for the timer's sake
	batch bytes.Buffer
	timer *time.Timer
	sent  error
}

// newPrinter makes a printer that toolhost_row knows until done.
func newPrinter(out *plugin.Output, columns []string, rows int) (p *printer, done func()) {
	p = &printer{out: out, names: unique(columns), maxRows: rows}
	for _, name := range p.names {
		p.keys = append(p.keys, encode(strings.ToValidUTF8(name, "\uFFFD")))
	}
	p.timer = time.AfterFunc(time.Hour, func() { _ = p.flush() })
	p.timer.Stop()
	printers.Lock()
	defer printers.Unlock()
	if printers.byID == nil {
		printers.byID = map[int64]*printer{}
	}
	p.id = rand.Int64() // which no query knows
	printers.byID[p.id] = p
	return p, func() {
		p.timer.Stop()
		printers.Lock()
		defer printers.Unlock()
		delete(printers.byID, p.id)
	}
}

// unique numbers the columns of one name: an object's members differ.
func unique(columns []string) []string {
	seen := map[string]bool{}
	names := make([]string, len(columns))
	for i, name := range columns {
		names[i] = name
		for n := 2; seen[names[i]]; n++ {
			names[i] = fmt.Sprintf("%s_%d", name, n)
		}
		seen[names[i]] = true
	}
	return names
}

var errEnough = errors.New("enough rows")

// print takes a row; an error ends the query.
func (p *printer) print(values []driver.Value) error {
	if p.rows >= p.maxRows {
		p.truncated = true
		return errEnough
	}
	line := p.line(values)
	if p.bytes += len(line); p.bytes > maxBytes {
		if p.rows == 0 {
			p.failed = fmt.Errorf("the first row has %d bytes, %d may be shown: ask for fewer columns or a part of them, as with substr()", len(line), maxBytes)
		}
		p.truncated = true
		return errEnough
	}
	p.rows++
	return p.add(line)
}

func (p *printer) line(values []driver.Value) []byte {
	line := []byte{'{'}
	for i, value := range values {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, p.keys[i]...)
		line = append(line, ':')
		line = append(line, encodeValue(value)...)
	}
	return append(line, '}', '\n')
}

func encodeValue(value driver.Value) []byte {
	switch v := value.(type) {
	case []byte:
		return encode(map[string][]byte{"base64": v})
	case string:
		return encode(strings.ToValidUTF8(v, "\uFFFD"))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) { // JSON has none of these
			return encode(fmt.Sprint(v))
		}
	}
	return encode(value)
}

// encode leaves <, > and & as they are.
func encode(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // of types that always can be
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (p *printer) add(line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.batch.Len() == 0 {
		p.timer.Reset(flushInterval)
	}
	p.batch.Write(line)
	if p.batch.Len() >= flushBytes {
		return p.send()
	}
	return p.sent
}

// flush sends what is there. An error is the host's absence.
func (p *printer) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.send()
}

func (p *printer) send() error {
	if p.batch.Len() > 0 && p.sent == nil {
		p.sent = p.out.Text(p.batch.String())
	}
	p.batch.Reset()
	return p.sent
}
