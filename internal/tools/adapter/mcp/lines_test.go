package mcp

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What is taken for a plain answer is what the SDK reads.
func TestPlainAnswers(t *testing.T) {
	for line, plain := range map[string]bool{
		`{"jsonrpc":"2.0","id":7,"result":{"n":1.50}}`:                                                            true,
		`{"id":0,"result":null,"jsonrpc":"2.0"}`:                                                                  true,
		`{"jsonrpc":"2.0","id":7.0,"result":{}}`:                                                                  false,
		`{"jsonrpc":"2.0","id":-7,"result":{}}`:                                                                   false,
		`{"jsonrpc":"2.0","id":"7","result":{}}`:                                                                  false,
		`{"jsonrpc":"2.0","id":90071992547409930,"result":{}}`:                                                    false,
		`{"jsonrpc":"1.0","id":7,"result":{}}`:                                                                    false,
		`{"jsonrpc":"2.0","ID":7,"result":{}}`:                                                                    false,
		`{"jsonrpc":"2.0","id":7,"Result":{}}`:                                                                    false,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""}}`:                                                false,
		`{"jsonrpc":"2.0","id":7,"result":{},"error":null}`:                                                       false,
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`:                                                                false,
		`[{"jsonrpc":"2.0","id":7,"result":{}}]`:                                                                  false,
		`{"jsonrpc":"2.0","id":7,"result":{},"result":{"the":"later","n":1}}`:                                     true,
		`{"jsonrpc":"2.0","id":7,"result":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`: true,
	} {
		got := plainAnswer([]byte(line))
		if (got != nil) != plain {
			t.Errorf("%s: taken for plain: %v", line, !plain)
		}
		if got == nil {
			continue
		}
		want, err := jsonrpc.DecodeMessage([]byte(line))
		if err != nil || !reflect.DeepEqual(want, jsonrpc.Message(got)) {
			t.Errorf("%s: read as %+v, the SDK's %+v, %v", line, got, want, err)
		}
	}
}

// A log line before each message ends nothing, however many there are: only what goes on
// without a message does.
func TestStrays(t *testing.T) {
	strays := 0
	l := newLines(strings.NewReader(strings.Repeat("a log line\n"+`{"jsonrpc":"2.0","id":7,"result":{}}`+"\n", 2*maxStrays)+strings.Repeat("garbage\n", 2*maxStrays)), func([]byte) { strays++ })
	for range 2 * maxStrays {
		if _, err := l.next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.next(); !errors.Is(err, errStrays) || strays != 3*maxStrays {
		t.Errorf("%d lines were passed over: %v", strays, err)
	}
}

// A byte order mark before the first message belongs to none; one before another line makes
// that no message, and the note on it says so.
func TestByteOrderMarks(t *testing.T) {
	const answer = "\uFEFF" + `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n"
	var strays []string
	l := newLines(strings.NewReader(answer+answer), func(line []byte) { strays = append(strays, strayNote(line)) })
	if next, err := l.next(); err != nil || next.Message == nil {
		t.Errorf("the first line: %v, %v", next, err)
	}
	if _, err := l.next(); !errors.Is(err, io.EOF) || len(strays) != 1 || !strings.Contains(strays[0], "with a byte order mark") {
		t.Errorf("the second line: %v, noted %q", err, strays)
	}
}
