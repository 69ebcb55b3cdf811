package relay

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// counters are the open /proc/net/snmp and /proc/net/snmp6 of a namespace.
type counters [2]*os.File

// refusals of the kernel in snmp, by the line that they are in, and in snmp6.
var (
	refusals4 = map[string]string{"Ip:": "OutNoRoutes", "Tcp:": "AttemptFails", "Udp:": "NoPorts"}
	refusals6 = []string{"Ip6OutNoRoutes", "Udp6NoPorts"}
)

// texts are for one file at a time. Every call ends by reading both.
var texts = sync.Pool{New: func() any { return new([countersBytes]byte) }}

// countersBytes is more than either file has.
const countersBytes = 8 << 10

// unreachable is how often the kernel has refused inside the namespace.
func (c counters) unreachable() int64 {
	text := texts.Get().(*[countersBytes]byte)
	defer texts.Put(text)
	return snmp(c.read(0, text)) + snmp6(c.read(1, text))
}

// read reads once: the kernel makes the whole text for each read, that of its end
// included.
func (c counters) read(i int, into *[countersBytes]byte) []byte {
	n := 0
	if raw, err := c[i].SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.Pread(int(fd), into[:], 0) })
	}
	return into[:max(n, 0)]
}

// snmp reads pairs of lines: names, then values.
func snmp(raw []byte) (sum int64) {
	var names []byte
	for line := range bytes.Lines(raw) {
		group, rest, _ := bytes.Cut(line, []byte(" "))
		if !bytes.HasPrefix(names, group) {
			names = line
			continue
		}
		if wanted := refusals4[string(group)]; wanted != "" {
			sum += valueOf(wanted, names[len(group):], rest)
		}
		names = nil
	}
	return sum
}

// valueOf is the value that stands where a name does.
func valueOf(wanted string, names, values []byte) int64 {
	at := 0
	for name := range bytes.FieldsSeq(names) {
		if string(name) == wanted {
			break
		}
		at++
	}
	for value := range bytes.FieldsSeq(values) {
		if at == 0 {
			return number(value)
		}
		at--
	}
	return 0
}

func snmp6(raw []byte) (sum int64) {
	for line := range bytes.Lines(raw) {
		name, value, _ := bytes.Cut(line, []byte(" "))
		if slices.Contains(refusals6, string(name)) {
			sum += number(bytes.TrimSpace(value))
		}
	}
	return sum
}

func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}
