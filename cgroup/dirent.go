package cgroup

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// appendEntries decodes getdents64(2) records. kernfs always fills d_type.
func appendEntries(names []string, buf []byte, dirs bool) []string {
	const header = 19 // ino 8, off 8, reclen 2, type 1
	for len(buf) >= header {
		reclen := int(binary.NativeEndian.Uint16(buf[16:]))
		if reclen < header || reclen > len(buf) {
			return names
		}
		name, _, _ := bytes.Cut(buf[header:reclen], []byte{0})
		isDir := buf[18] == unix.DT_DIR
		if n := string(name); n != "." && n != ".." && isDir == dirs {
			names = append(names, n)
		}
		buf = buf[reclen:]
	}
	return names
}
