package cgroup

import (
	"os"
	"strconv"
	"strings"
)

// descent is a process and its descendants, as procfs tells them: what is orphaned
// in a PID namespace stays below the namespace's first process.
type descent struct {
	leader int
	start  string // of the leader, which tells it from a later one of its number
}

// process is what /proc/PID/stat says that matters here.
type process struct {
	parent int
	start  string
}

// pids lists the living, the leader first; none if it has ended.
func (d descent) pids() ([]int, error) {
	if d.start == "" || startTime(d.leader) != d.start {
		return nil, nil
	}
	children, err := childrenOf()
	if err != nil {
		return nil, err
	}
	list := []int{d.leader}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	if startTime(d.leader) != d.start { // it was another's tree meanwhile
		return nil, nil
	}
	return list, nil
}

// childrenOf lists the children of every process. What ends meanwhile is left out.
func childrenOf() (map[int][]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			children[p.parent] = append(children[p.parent], pid)
		}
	}
	return children, nil
}

func startTime(pid int) string {
	p, _ := readProcess(pid)
	return p.start
}

// readProcess reads a process that lives. Source: proc_pid_stat(5).
func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(string(text))
}

// Fields of /proc/PID/stat behind the name, which may hold anything.
const (
	statState  = 0
	statParent = 1
	statStart  = 19
)

// parseStat is false for a zombie too.
func parseStat(text string) (process, bool) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return process{}, false
	}
	f := strings.Fields(text[end+1:])
	if len(f) <= statStart || f[statState] == "Z" || f[statState] == "X" {
		return process{}, false
	}
	parent, err := strconv.Atoi(f[statParent])
	return process{parent, f[statStart]}, err == nil
}
