// Package processes finds processes of this machine by what they were started
// with. A test marks its own with something that no other run has.
package processes

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// WithEnvironment are those that have this entry (KEY=VALUE).
func WithEnvironment(entry string) (pids []int) {
	return find("environ", func(text string) bool { return strings.Contains("\x00"+text, "\x00"+entry+"\x00") })
}

// WithArguments are those that have each of the parts somewhere in their
// command line.
func WithArguments(parts ...string) (pids []int) {
	return find("cmdline", func(text string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
	})
}

// Of are those with exactly these arguments.
func Of(argv ...string) (pids []int) {
	return find("cmdline", func(text string) bool { return text == strings.Join(argv, "\x00")+"\x00" })
}

// Children are those of the process with this pid.
func Children(pid int) (pids []int) {
	paths, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children") // the pattern is good
	for _, path := range paths {
		text, _ := os.ReadFile(path) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(field) // the kernel writes numbers
			pids = append(pids, child)
		}
	}
	return pids
}

// Zygote is the child of this process that forks the launchers of tools, or 0
// without one.
func Zygote() int {
	children := Children(os.Getpid())
	if i := slices.IndexFunc(children, IsZygote); i >= 0 {
		return children[i]
	}
	return 0
}

// IsZygote reports whether the process with this pid is a zygote.
func IsZygote(pid int) bool {
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.HasPrefix(string(line), "toolhost-zygote")
}

// find leaves out what has gone, or is not ours to read.
func find(file string, is func(text string) bool) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/" + file) // the pattern is good
	for _, path := range paths {
		text, err := os.ReadFile(path)
		pid, notPid := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && notPid == nil && is(string(text)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
