package top

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

// keyNames are what terminals send. Arrows come in two modes (DECCKM).
var keyNames = []struct {
	bytes string
	press press
}{
	{"\x1b[A", pressUp},
	{"\x1bOA", pressUp},
	{"\x1b[B", pressDown},
	{"\x1bOB", pressDown},
	{"\x1b[H", pressFirst},
	{"\x1b[1~", pressFirst},
	{"\x1b[F", pressLast},
	{"\x1b[4~", pressLast},
	{"k", pressUp},
	{"j", pressDown},
	{"g", pressFirst},
	{"G", pressLast},
	{"a", pressAbortCall},
	{"t", pressAbortTurn},
	{"q", pressQuit},
	{"\x03", pressQuit},
	{"\x04", pressQuit},
}

// decode reads the keys of one read. An escape sequence that is not known is
// skipped whole: its letters are not to abort anything.
func decode(b []byte) (keys []press) {
	for len(b) > 0 {
		p, n := first(b)
		if p != pressNone {
			keys = append(keys, p)
		}
		b = b[n:]
	}
	return keys
}

func first(b []byte) (press, int) {
	for _, k := range keyNames {
		if len(b) >= len(k.bytes) && string(b[:len(k.bytes)]) == k.bytes {
			return k.press, len(k.bytes)
		}
	}
	if b[0] == 0x1b {
		return pressNone, sequence(b)
	}
	return pressNone, 1
}

// sequence is the length of an escape sequence (ECMA-48, 5.4): CSI ends with a
// byte from @ to ~; others have one byte more.
func sequence(b []byte) int {
	if len(b) < 2 || b[1] != '[' {
		return min(2, len(b))
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= '@' && b[i] <= '~' {
			return i + 1
		}
	}
	return len(b)
}
