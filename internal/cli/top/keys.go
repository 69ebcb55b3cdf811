package top

import "github.com/toolhost/toolhost/internal/lazy"

// press is what a key means.
type press int

const (
	pressNone press = iota
	pressUp
	pressDown
	pressFirst
	pressLast
	pressAbortCall
	pressAbortTurn
	pressQuit
)

// presses are what terminals send. Arrows come in two modes (DECCKM).
var presses = map[string]press{
	"\x1b[A": pressUp, "\x1bOA": pressUp, "k": pressUp, "\x1b[B": pressDown, "\x1bOB": pressDown, "j": pressDown,
	"\x1b[H": pressFirst, "\x1b[1~": pressFirst, "g": pressFirst, "\x1b[F": pressLast, "\x1b[4~": pressLast, "G": pressLast,
	"a": pressAbortCall, "t": pressAbortTurn, "q": pressQuit, "\x03": pressQuit, "\x04": pressQuit,
}

// sequence is one key: an escape sequence (ECMA-48, 5.4), whole, whose letters
// are not to abort anything, or a character.
var sequence = lazy.Regexp(`(?s)\x1b\[[^@-~]*[@-~]?|\x1bO.?|\x1b.?|.`)

// decode reads the keys of one read.
func decode(b []byte) (keys []press) {
	for _, one := range sequence().FindAll(b, -1) {
		if p := presses[string(one)]; p != pressNone {
			keys = append(keys, p)
		}
	}
	return keys
}
