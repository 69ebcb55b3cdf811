package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lines reads messages that are a line each.
type lines struct {
	in    *bufio.Reader
	begun bool
}

func newLines(in io.Reader) *lines { return &lines{in: bufio.NewReader(in)} }

var errLong = fmt.Errorf("a line has more than %d bytes", maxMessageBytes)

// byteOrderMark is what some programs begin a stream with.
var byteOrderMark = []byte("\xef\xbb\xbf")

// next is the next line that is not blank, without space around it; the last
// one needs no end. A line that is too long is read to its end, kept nowhere,
// and errLong.
func (l *lines) next() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessageBytes; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if !l.begun {
			l.begun = true
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		line = bytes.Trim(line, " \t\r\n")
		switch {
		case long:
			return nil, errLong
		case len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}
		line = nil
	}
}
