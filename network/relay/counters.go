package relay

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// counters are the open /proc/net/snmp and /proc/net/snmp6 of a namespace.
type counters [2]*os.File

// refusals of the kernel in snmp (by the line they are in) and in snmp6.
var (
	refusals4 = map[string][]string{"Ip:": {"OutNoRoutes"}, "Tcp:": {"AttemptFails"}, "Udp:": {"NoPorts"}}
	refusals6 = []string{"Ip6OutNoRoutes", "Udp6NoPorts"}
)

// unreachable is how often the kernel has refused inside the namespace.
func (c counters) unreachable() int64 { return snmp(c.read(0)) + snmp6(c.read(1)) }

// countersBytes is more than either has.
const countersBytes = 8 << 10

// read reads once: the kernel makes the whole text for each read, that of its end
// included.
func (c counters) read(i int) []byte {
	b, n := make([]byte, countersBytes), 0
	if raw, err := c[i].SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.Pread(int(fd), b, 0) })
	}
	return b[:max(n, 0)]
}

// snmp reads pairs of lines: names, then values.
func snmp(raw []byte) (sum int64) {
	var names []string
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(names) != len(fields) || names[0] != fields[0] {
			names = fields
			continue
		}
		for i, name := range names {
			for _, wanted := range refusals4[names[0]] {
				if name == wanted {
					n, _ := strconv.ParseInt(fields[i], 10, 64)
					sum += n
				}
			}
		}
		names = nil
	}
	return sum
}

func snmp6(raw []byte) (sum int64) {
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		for _, wanted := range refusals6 {
			if len(fields) == 2 && fields[0] == wanted {
				n, _ := strconv.ParseInt(fields[1], 10, 64)
				sum += n
			}
		}
	}
	return sum
}
