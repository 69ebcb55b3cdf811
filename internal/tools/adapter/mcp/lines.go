package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxMessageBytes bounds one message of a server.
const maxMessageBytes = 16 << 20

// maxStrays is how many lines of a server's stdout may be no messages. Many
// servers print a greeting there, or a log line now and then; they work with
// other clients, and do here.
const maxStrays = 100

var (
	errTooLong = fmt.Errorf("sent a message of more than %d bytes", maxMessageBytes)
	errStrays  = errors.New("writes to stdout, which is for messages alone, what is not JSON-RPC")
)

// lines reads a server's stdout and lets only messages through, one a line. The
// SDK's transport would give up at the first other line.
type lines struct {
	from  *bufio.Reader
	close func() error
	stray func(line []byte)
	// mended gets each message that had bytes which are not UTF-8, and their number.
	mended func(message []byte, bytes int)

	ready  [][]byte // messages that were read
	rest   []byte   // of the message that is being handed on
	strays int
}

func newLines(from io.ReadCloser, stray func([]byte), mended func([]byte, int)) *lines {
	return &lines{from: bufio.NewReaderSize(from, 64<<10), close: from.Close, stray: stray, mended: mended}
}

func (l *lines) Close() error { return l.close() }

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if len(l.ready) == 0 {
			if err := l.fill(); err != nil {
				return 0, err
			}
			continue
		}
		l.rest, l.ready = append(l.ready[0], '\n'), l.ready[1:]
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// fill takes one line.
func (l *lines) fill() error {
	line, err := l.line()
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return err
	}
	messages := split(line, l.mended)
	if messages == nil {
		if l.strays++; l.strays > maxStrays {
			return errStrays
		}
		l.stray(line)
		return err
	}
	l.ready = messages
	return nil // an end of file comes again
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

// split gives the messages in a line: one, or those of a batch, or none if anything is wrong with
// them but the form of an answer. json.Valid comes first: it bounds the depth, which the SDK's
// decoder does not. Invalid UTF-8 is replaced, as in all text: raw parts of a message would carry it
// on.
func split(line []byte, mended func([]byte, int)) [][]byte {
	if !json.Valid(line) {
		return nil
	}
	messages := [][]byte{line}
	if line[0] == '[' {
		messages = elements(line)
	}
	for i, message := range messages {
		if !utf8.Valid(message) {
			wrong := notText(message)
			message = bytes.ToValidUTF8(message, []byte("\uFFFD"))
			mended(message, wrong)
		}
		messages[i] = message
		if _, err := jsonrpc.DecodeMessage(message); err == nil {
			continue
		}
		if messages[i] = malformedAnswer(message); messages[i] == nil {
			return nil
		}
	}
	return messages
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
