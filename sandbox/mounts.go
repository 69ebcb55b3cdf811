package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/text"
)

// mountPoint is one line of proc_pid_mountinfo(5).
type mountPoint struct {
	id                    uint64
	device, root, at, typ string
}

// mountTable are the mounts that this process sees.
type mountTable []mountPoint

func readMounts() (mountTable, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot read /proc/self/mountinfo: %w", text.Cause(err))
	}
	return parseMounts(string(raw)), nil
}

func parseMounts(raw string) (table mountTable) {
	for line := range strings.Lines(raw) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 6 || len(kind) == 0 {
			continue
		}
		id, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			continue
		}
		table = append(table, mountPoint{id: id, device: fields[2], root: text.MountPath(fields[3]), at: text.MountPath(fields[4]), typ: kind[0]})
	}
	return table
}

func (t mountTable) find(id uint64) (mountPoint, bool) {
	for _, m := range t {
		if m.id == id {
			return m, true
		}
	}
	return mountPoint{}, false
}

// views are all paths at which what is opened can be seen, with parts also those of
// parts of it: bind mounts show one folder in several places.
func (t mountTable) views(o *opened, parts bool) (paths []string) {
	own, ok := t.find(o.id.mount)
	if !ok || !Within(o.path, own.at) {
		return []string{o.path}
	}
	inside := filepath.Join(own.root, strings.TrimPrefix(o.path, own.at))
	for _, m := range t {
		switch {
		case m.device != own.device:
		case Within(inside, m.root):
			paths = append(paths, filepath.Join(m.at, strings.TrimPrefix(inside, strings.TrimSuffix(m.root, "/"))))
		case parts && Within(m.root, inside):
			paths = append(paths, m.at)
		}
	}
	return paths
}

// kernelTypes are file systems that show the kernel, or the host's devices, and
// nothing that anybody has stored.
var kernelTypes = map[string]bool{
	"proc": true, "sysfs": true, "devtmpfs": true, "devpts": true, "cgroup": true, "cgroup2": true, "securityfs": true,
	"debugfs": true, "tracefs": true, "bpf": true, "configfs": true, "pstore": true, "efivarfs": true, "selinuxfs": true,
	"binfmt_misc": true, "mqueue": true, "fusectl": true, "nsfs": true,
	"hugetlbfs": true, // whose pages are the machine's, and count to no memory limit
}
