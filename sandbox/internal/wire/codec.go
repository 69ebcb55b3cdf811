package wire

import "encoding/binary"

// codec writes or reads a value's fields in their order. One visit method per
// type serves both ways, so that the two can't drift apart.
type codec struct {
	buf      []byte // what is still to be read, or what has been written
	decoding bool
	bad      bool
}

func (c *codec) number(v *int64) {
	if !c.decoding {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(*v))
		return
	}
	if len(c.buf) < 8 {
		c.fail()
		return
	}
	*v, c.buf = int64(binary.LittleEndian.Uint64(c.buf)), c.buf[8:]
}

func (c *codec) flag(v *bool) {
	var n int64
	if *v {
		n = 1
	}
	c.number(&n)
	if !c.decoding { // what is encoded may be shared: never written
		return
	}
	if n != 0 && n != 1 {
		c.fail()
	}
	*v = n == 1
}

// count is a length: never more than what is left to read.
func (c *codec) count(v *int) {
	n := int64(*v)
	c.number(&n)
	if c.decoding && (n < 0 || n > int64(len(c.buf))) {
		c.fail()
		n = 0
	}
	*v = int(n)
}

// text ends with a 0, so that the launcher can use it where it lies.
func (c *codec) text(v *string) {
	n := len(*v)
	c.count(&n)
	if !c.decoding {
		c.buf = append(append(c.buf, *v...), 0)
		return
	}
	if n >= len(c.buf) || c.buf[n] != 0 {
		c.fail()
		return
	}
	*v, c.buf = string(c.buf[:n]), c.buf[n+1:]
}

func (c *codec) fail() { c.bad, c.buf = true, nil }

// list visits a slice's length and elements. An empty slice is read as nil.
func list[T any](c *codec, v *[]T, visit func(*codec, *T)) {
	n := len(*v)
	c.count(&n)
	if c.decoding && n > 0 {
		*v = make([]T, n)
	}
	for i := range *v {
		visit(c, &(*v)[i])
	}
}

func texts(c *codec, v *[]string) { list(c, v, (*codec).text) }
