package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/plugin/wirejson"
)

// maxMessageBytes bounds one message of a server.
const maxMessageBytes = 16 << 20

// maxStrays is how many lines of a server's stdout in a row may be no messages. Many
// servers print a greeting there, or a log line with each call; they work with
// other clients, and do here.
const maxStrays = 100

var (
	errTooLong = fmt.Errorf("sent a message of more than %d bytes", maxMessageBytes)
	errStrays  = errors.New("writes to stdout, which is for messages alone, what is not JSON-RPC")
)

// received is one message of a server's.
type received struct {
	jsonrpc.Message
	mended int             // bytes of it that are not UTF-8
	id     json.RawMessage // of a request, as it is written: jsonrpc.ID rounds numbers
}

// byteOrderMark begins what some runtimes write in UTF-8; in JSON it has no place.
var byteOrderMark = []byte("\uFEFF")

// lines reads the messages in a server's stdout, one a line, and passes over other lines.
// The SDK's transport would give up at the first of them.
type lines struct {
	from   *bufio.Reader
	stray  func(line []byte)
	ready  []received // of a batch
	strays int        // since the last message
	begun  bool       // a line was read
}

func newLines(from io.Reader, stray func([]byte)) *lines {
	return &lines{from: bufio.NewReaderSize(from, 64<<10), stray: stray}
}

// next is the next message. After an error there are no more.
func (l *lines) next() (received, error) {
	for len(l.ready) == 0 {
		line, err := l.line()
		if !l.begun {
			line, l.begun = bytes.TrimPrefix(line, byteOrderMark), true
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.ready = split(line)
		}
		switch {
		case len(l.ready) > 0: // an end of file comes again
		case len(line) > 0 && l.strays == maxStrays:
			return received{}, errStrays
		case len(line) > 0:
			l.strays++
			l.stray(line)
		}
		if len(l.ready) == 0 && err != nil {
			return received{}, err
		}
	}
	next := l.ready[0]
	l.ready, l.strays = l.ready[1:], 0
	return next, nil
}

// line is the next line, or what there is of it at the end.
func (l *lines) line() (line []byte, err error) {
	for {
		piece, err := l.from.ReadSlice('\n')
		if len(line)+len(piece) > maxMessageBytes {
			return nil, errTooLong
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// maxDepth is as deep as a message may nest to be taken as it is: neither encoding/json nor
// the SDK takes all depths, and the host passes on far less. Values below that are emptied:
// the host leaves out the part of the message that they stand in, with a warning, and not
// all of it.
const maxDepth = 500

// split gives the messages in a line: one, or those of a batch, or none if anything is wrong with
// them but the form of an answer. Invalid UTF-8 is replaced, as in all text: raw parts of a
// message would carry it on.
func split(line []byte) (messages []received) {
	if bytes.Count(line, []byte("["))+bytes.Count(line, []byte("{")) > maxDepth {
		line = wirejson.Shallow(line, maxDepth)
	}
	if !json.Valid(line) {
		return nil
	}
	all := [][]byte{line}
	if line[0] == '[' {
		all = elements(line)
	}
	for _, raw := range all {
		one := received{}
		if !utf8.Valid(raw) {
			one.mended = notText(raw)
			raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
		}
		if answer := plainAnswer(raw); answer != nil {
			one.Message = answer
			messages = append(messages, one)
			continue
		}
		var err error
		if one.Message, err = jsonrpc.DecodeMessage(raw); err != nil {
			answer := cmp.Or(malformedAnswer(raw), orphan(raw))
			if answer == nil {
				return nil
			}
			one.Message = answer
		}
		switch m := one.Message.(type) {
		case *jsonrpc.Response:
			if m.Error == nil && m.Result == nil {
				m.Error = &jsonrpc.Error{Code: codeMalformed, Message: "the answer has neither a result nor an error"}
			}
		case *jsonrpc.Request:
			if m.IsCall() {
				one.id = idIn(raw)
			}
		}
		messages = append(messages, one)
	}
	return messages
}

// plainAnswer is an answer to one of this side's requests with a result, as most messages
// are, and nil for all else: the SDK takes 64 KiB to decode each.
func plainAnswer(message []byte) *jsonrpc.Response {
	var fields map[string]json.RawMessage
	if json.Unmarshal(message, &fields) != nil || len(fields) != 3 || string(fields["jsonrpc"]) != `"2.0"` || fields["result"] == nil {
		return nil
	}
	n, err := strconv.ParseUint(string(fields["id"]), 10, 32)
	if err != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(float64(n))
	if err != nil {
		return nil
	}
	return &jsonrpc.Response{ID: id, Result: fields["result"]}
}

// idIn is the id of a message, as it is written.
func idIn(message []byte) json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(message, &fields) // as has just been done
	return fields["id"]
}

// notText counts the bytes that are not UTF-8.
func notText(message []byte) (n int) {
	for len(message) > 0 {
		r, size := utf8.DecodeRune(message)
		if r == utf8.RuneError && size == 1 {
			n++
		}
		message = message[size:]
	}
	return n
}

// maxBatch is how many messages a batch may have.
const maxBatch = 1000

// elements are those of a JSON array, none if there are too many.
func elements(array []byte) (messages [][]byte) {
	decoder := json.NewDecoder(bytes.NewReader(array))
	_, _ = decoder.Token()
	for decoder.More() {
		var message json.RawMessage
		if decoder.Decode(&message) != nil || len(messages) == maxBatch {
			return nil
		}
		messages = append(messages, message)
	}
	return messages
}
