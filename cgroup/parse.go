package cgroup

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// parseInt reads a control file's number: "max" and values that are too big
// are MaxInt64, malformed ones 0.
func parseInt(s string) int64 {
	s = strings.TrimSpace(s)
	if s == "max" {
		return math.MaxInt64
	}
	v, _ := strconv.ParseUint(s, 10, 64) // 0 on rubbish, MaxUint64 on overflow
	return int64(min(v, math.MaxInt64))
}

// usec turns a kernel's microseconds into a duration, saturating.
func usec(v int64) time.Duration {
	return time.Duration(min(v, math.MaxInt64/int64(time.Microsecond))) * time.Microsecond
}

// parseIOStat sums rbytes and wbytes over the devices of v2's io.stat.
func parseIOStat(text string) (read, written int64) {
	for word := range strings.FieldsSeq(text) {
		if v, ok := strings.CutPrefix(word, "rbytes="); ok {
			read = addSaturating(read, parseInt(v))
		} else if v, ok := strings.CutPrefix(word, "wbytes="); ok {
			written = addSaturating(written, parseInt(v))
		}
	}
	return read, written
}

// parseBlkio sums the "8:0 Read N" and "8:0 Write N" lines of v1's blkio files.
func parseBlkio(text string) (read, written int64) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		switch f[1] {
		case "Read":
			read = addSaturating(read, parseInt(f[2]))
		case "Write":
			written = addSaturating(written, parseInt(f[2]))
		}
	}
	return read, written
}

func addSaturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
