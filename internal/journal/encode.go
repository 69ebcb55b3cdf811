package journal

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/toolhost/toolhost/api"
)

// appendEvents adds to a record of the redo log what decodeEvents reads, texts and bytes behind their lengths.
func appendEvents(b []byte, events []Event) []byte {
	for i := range events {
		e := &events[i]
		for _, text := range []string{e.TurnID, string(e.Kind), e.CallID, e.Tool, e.Owner} {
			b = appendBytes(b, text)
		}
		b = binary.AppendVarint(b, e.Seq)
		b = binary.AppendVarint(b, e.Time.UnixNano())
		b = appendBytes(b, e.JSON)
		b = appendOutcome(b, e.Outcome)
	}
	return b
}

// Whether there is an outcome, and a result in it.
const (
	noOutcome = iota
	withoutResult
	withResult
)

func appendOutcome(b []byte, o *Outcome) []byte {
	switch {
	case o == nil:
		return append(b, noOutcome)
	case o.Result == nil:
		b = append(b, withoutResult)
	default:
		b = append(b, withResult)
	}
	b = appendBytes(b, o.Status)
	b = appendBytes(b, o.Reason)
	b = binary.AppendVarint(b, int64(o.Elapsed))
	return appendBytes(b, o.Result)
}

func appendBytes[T ~string | ~[]byte](b []byte, value T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// decodeEvents is the reverse of appendEvents. The events' bytes are those of the record.
func decodeEvents(raw []byte) ([]Event, error) {
	d := decoder{rest: raw}
	var events []Event
	for len(d.rest) > 0 && !d.failed {
		e := Event{TurnID: d.text(), Kind: api.EventKind(d.text()), CallID: d.text(), Tool: d.text(), Owner: d.text()}
		e.Seq, e.Time, e.JSON, e.Outcome = d.number(), fromNano(d.number()), d.bytes(), d.outcome()
		events = append(events, e)
	}
	if d.failed {
		return nil, errors.New("a record of the redo log cannot be read")
	}
	return events, nil
}

type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.failed, n = true, 0
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) bytes() []byte {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > uint64(len(d.rest)) {
		d.failed = true
		return nil
	}
	d.take(size)
	return d.take(int(n))
}

func (d *decoder) text() string { return string(d.bytes()) }

func (d *decoder) number() int64 {
	n, size := binary.Varint(d.rest)
	d.take(max(size, 0))
	d.failed = d.failed || size <= 0
	return n
}

func (d *decoder) outcome() *Outcome {
	kind := d.take(1)
	if d.failed || kind[0] == noOutcome {
		return nil
	}
	o := &Outcome{Status: api.Status(d.text()), Reason: api.Reason(d.text()), Elapsed: time.Duration(d.number()), Result: d.bytes()}
	if kind[0] == withoutResult {
		o.Result = nil
	}
	return o
}
