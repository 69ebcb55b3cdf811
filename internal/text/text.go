// Package text shortens and cuts what is shown: it is below every other room.
package text

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// Cut bounds s to a number of characters; one that is cut ends with "…".
func Cut(s string, most int) string {
	count, last := 0, 0
	for i := range s {
		if count++; count == most {
			last = i
		} else if count > most {
			return string([]rune(s[:last])) + "…"
		}
	}
	return s
}

// Bytes bounds s to a number of bytes, of valid UTF-8 where s is cut.
func Bytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// Begin is Bytes, with "…" behind a text that was cut.
func Begin(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return Bytes(s, most) + "…"
}

// Holds says whether s has said in it, as far as that was not cut.
func Holds(s, said string) bool { return strings.Contains(s, strings.TrimSuffix(said, "…")) }

// FirstLine is the first line of s that is not blank.
func FirstLine(s string) string {
	for line := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(line) != "" {
			return line
		}
	}
	return ""
}

// Labels are written as NAME=VALUE, by name, with "and" between.
func Labels(of map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, name+"="+of[name])
	}
	return strings.Join(list, " and ")
}

// unreached are the words of programs that have not reached somebody.
var unreached = []string{
	"EAI_AGAIN", "ENOTFOUND", "ENETUNREACH", "fetch failed", "getaddrinfo", "Name or service not known", "Could not resolve host",
	"Temporary failure in name resolution", "network is unreachable", "Network is unreachable",
}

// Unreached says whether a program has said so.
func Unreached(said string) bool {
	return slices.ContainsFunc(unreached, func(words string) bool { return strings.Contains(said, words) })
}

// MoreStartTime is what an adapter says of a server that is not ready in time.
const MoreStartTime = "a higher startTimeout gives it more"

// Cause is err without its call and path, which the message names already.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err
	}
	return err
}

// Whole returns b behind half, which is the beginning of a character, as far as its
// characters are complete; next is the beginning of one at its end.
func Whole(half, b []byte) (whole, next []byte) {
	if len(half) > 0 {
		b = slices.Concat(half, b)
	}
	end := len(b) - halfBytes(b)
	return b[:end], slices.Clone(b[end:])
}

// halfBytes counts the bytes at the end that begin a character and do not complete it.
func halfBytes(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// mountPaths are the escapes of paths in /proc/self/mountinfo (show_mountinfo of the kernel).
var mountPaths = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#")

// MountPath reads a path of /proc/self/mountinfo, proc_pid_mountinfo(5).
func MountPath(field string) string { return mountPaths.Replace(field) }
