package wire

import "errors"

// The decoders are the launcher's in C; these hold it to what is encoded.
var (
	errBirth   = errors.New("malformed birth request")
	errOptions = errors.New("malformed launcher options")
)

// decode is the inverse of Encode.
func decode(b []byte) (Options, error) {
	var o Options
	c := codec{buf: b, decoding: true}
	o.visit(&c)
	if c.bad || len(c.buf) != 0 || !few(o.Extra) || !few(o.Held) || !few(o.Staged) || len(o.Root.Listen) > MaxSockets || o.Tool.TimerNS < 0 || o.Lease && o.Held == 0 {
		return Options{}, errOptions
	}
	return o, nil
}

// decodeTool is the inverse of Encode.
func decodeTool(b []byte) (Tool, error) {
	var t Tool
	c := codec{buf: b, decoding: true}
	t.visit(&c)
	if c.bad || len(c.buf) != 0 || t.TimerNS < 0 {
		return Tool{}, errOptions
	}
	return t, nil
}

// decodeBirth is the inverse of Encode.
func decodeBirth(raw []byte) (Birth, error) {
	var b Birth
	c := codec{buf: raw, decoding: true}
	b.visit(&c)
	if c.bad || len(c.buf) != 0 || !few(b.Enter) {
		return Birth{}, errBirth
	}
	return b, nil
}

func few(n int64) bool { return n >= 0 && n <= MaxBirthFiles }
