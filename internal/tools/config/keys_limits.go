package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/supervisor"
)

// amount makes the row of a limit that is one number.
func amount(k *key, field func(*supervisor.Limits) *int64) *key {
	k.process = true
	k.sets = k.sets.and(to(func(t *Tool, s setting) { *field(&t.Limits) = s.data.(int64) }))
	return k
}

// total adds the host's total of the same limit; 0 means none.
func total(k *key, field func(*cgroup.Limits) *int64) *key {
	k.sets = k.sets.and(to(func(l *cgroup.Limits, s setting) {
		*field(l) = s.data.(int64)
		if s.data == supervisor.Unlimited {
			*field(l) = 0
		}
	}))
	return k
}

// groupKeys are the limits that a cgroup enforces: a call's own, or the totals
// of all calls.
var groupKeys = []*key{
	total(amount(&key{
		name: "memory", systemd: "MemoryMax", variable: "TOOLHOST_MEMORY", kind: sizeOrInfinity, std: "512MiB",
		doc: "memory of the whole process tree, page cache included; swap is 0",
	}, func(l *supervisor.Limits) *int64 { return &l.MemoryBytes }), func(l *cgroup.Limits) *int64 { return &l.MemoryBytes }),
	total(amount(&key{
		name: "pids", systemd: "TasksMax", variable: "TOOLHOST_PIDS", kind: countOrInfinity, std: "64",
		doc: "processes and threads together",
	}, func(l *supervisor.Limits) *int64 { return &l.Pids }), func(l *cgroup.Limits) *int64 { return &l.Pids }),
	total(amount(&key{
		name: "cpu", systemd: "CPUQuota", variable: "TOOLHOST_CPU", kind: percentOrInfinity, std: "100%",
		doc: "CPU quota in percent of one CPU: 200% is two",
	}, func(l *supervisor.Limits) *int64 { return &l.CPUPercent }), func(l *cgroup.Limits) *int64 { return &l.CPUPercent }),
	total(amount(&key{
		name: "cpuWeight", systemd: "CPUWeight", kind: weightKind, std: "(100, the kernel's)",
		doc: "share of the CPUs under contention",
	}, func(l *supervisor.Limits) *int64 { return &l.CPUWeight }), func(l *cgroup.Limits) *int64 { return &l.CPUWeight }),
	total(amount(&key{
		name: "ioWeight", systemd: "IOWeight", kind: weightKind, std: "(100, the kernel's)",
		doc: "share of the block devices under contention",
	}, func(l *supervisor.Limits) *int64 { return &l.IOWeight }), func(l *cgroup.Limits) *int64 { return &l.IOWeight }),
	{
		name: "ioMax", process: true, std: "(none)", names: deviceNames, keys: deviceKeys,
		doc: "bandwidth of a block device, by its number or path: `{\"8:0\": {read: 10MiB}}`",
	},
}

var deviceNames = &names{word: "DEVICE", pattern: `^([0-9]+:[0-9]+|/dev/[A-Za-z0-9_-]+)$`, check: func(name string) string {
	if deviceNumber().MatchString(name) || devicePath().MatchString(name) {
		return ""
	}
	return "is not a block device: write its number, such as 8:0 from /proc/partitions, or its path, such as /dev/sda"
}}

var (
	deviceNumber = lazy.Regexp(`^[0-9]{1,4}:[0-9]{1,7}$`)
	devicePath   = lazy.Regexp(`^/dev/[A-Za-z0-9_-]+$`)
)

var deviceKeys = []*key{
	deviceKey("read", sizeKind, "bytes read in a second", func(m *cgroup.IOMax) *int64 { return &m.ReadBytes }),
	deviceKey("write", sizeKind, "bytes written in a second", func(m *cgroup.IOMax) *int64 { return &m.WriteBytes }),
	deviceKey("readOps", countKind, "reads in a second", func(m *cgroup.IOMax) *int64 { return &m.ReadOps }),
	deviceKey("writeOps", countKind, "writes in a second", func(m *cgroup.IOMax) *int64 { return &m.WriteOps }),
}

// deviceKey makes a row that finds its device's entry by the setting's name.
func deviceKey(name string, k *kind, doc string, field func(*cgroup.IOMax) *int64) *key {
	set := func(list *[]cgroup.IOMax, s setting) {
		*field(deviceEntry(list, s.name)) = s.data.(int64)
	}
	return &key{name: name, kind: k, std: "(unlimited)", doc: doc, sets: to(func(t *Tool, s setting) { set(&t.Limits.IOMax, s) }).
		and(to(func(l *cgroup.Limits, s setting) { set(&l.IOMax, s) }))}
}

// deviceEntry finds or adds a device. Paths have been replaced by numbers when
// settings are applied; see numberDevices.
func deviceEntry(list *[]cgroup.IOMax, name string) *cgroup.IOMax {
	major, minor, _ := strings.Cut(name, ":")
	a, _ := strconv.ParseUint(major, 10, 32)
	b, _ := strconv.ParseUint(minor, 10, 32)
	for i, m := range *list {
		if m.Major == uint32(a) && m.Minor == uint32(b) {
			return &(*list)[i]
		}
	}
	*list = append(*list, cgroup.IOMax{Major: uint32(a), Minor: uint32(b)})
	return &(*list)[len(*list)-1]
}

// limitKeys are the limits of one call.
var limitKeys = slices.Concat(groupKeys, ownLimitKeys, networkLimitKeys)

// ownLimitKeys are those that no cgroup enforces.
var ownLimitKeys = []*key{
	{
		name: "cpuTime", kind: durationOrInfinite, std: "(none)", process: true,
		doc:  "CPU time of all processes together; a call over it is killed",
		sets: to(func(t *Tool, s setting) { t.Limits.CPUTime = s.data.(time.Duration) }),
	},
	amount(&key{
		name: "output", variable: "TOOLHOST_OUTPUT", kind: sizeKind, std: "1MiB",
		doc: "how much of each output stream a result keeps, half of it head and half tail; never kills",
	}, func(l *supervisor.Limits) *int64 { return &l.OutputBytes }),
	amount(&key{
		name: "outputTotal", kind: sizeOrInfinity, std: "(none)",
		doc: "output on all streams together; a call over it is killed",
	}, func(l *supervisor.Limits) *int64 { return &l.OutputTotalBytes }),
	amount(&key{
		name: "spill", kind: sizeKind, std: "64MiB",
		doc: "size of each file for output that a result does not keep; see `dirs.spill`",
	}, func(l *supervisor.Limits) *int64 { return &l.SpillBytes }),
	amount(&key{
		name: "openFiles", systemd: "LimitNOFILE", kind: countKind, std: "1024",
		doc: "open files of one process",
	}, func(l *supervisor.Limits) *int64 { return &l.OpenFiles }),
	amount(&key{
		name: "workspace", kind: sizeKind, std: "(a quarter of memory)",
		doc: "size of the call's own folder /workspace; counts toward memory",
	}, func(l *supervisor.Limits) *int64 { return &l.WorkspaceBytes }),
	amount(&key{
		name: "workspaceInodes", kind: countKind, std: "65536",
		doc: "files and folders in /workspace; /tmp has a quarter of it",
	}, func(l *supervisor.Limits) *int64 { return &l.WorkspaceInodes }),
	amount(&key{
		name: "tmp", kind: sizeKind, std: "(an eighth of memory)",
		doc: "size of /tmp; with /workspace and /dev/shm (a 32nd) at most half of memory",
	}, func(l *supervisor.Limits) *int64 { return &l.TmpBytes }),
}

// numberDevices replaces names of devices by their numbers. The settings lie by these,
// too, so that a device is the same one in all layers, however each names it.
func (r *reader) numberDevices(l layer) {
	for _, path := range slices.Sorted(maps.Keys(l)) {
		s := l[path]
		if s.key == nil || find(deviceKeys, s.key.name) != s.key {
			continue
		}
		delete(l, path)
		number, wrong := r.machine.device(s.name)
		key := strings.Replace(path, s.name, number, 1)
		switch other, twice := l[key]; {
		case wrong != "":
			r.complain(s.node, "%s %s", quoted(s.name), wrong)
		case twice:
			r.complain(s.node, "%s is device %s, which has a limit of this kind in line %d, too: take one out", quoted(s.name), number, other.source.Line)
		default:
			s.name = number
			l[key] = s
		}
	}
}

// device is the number of a block device, which is named by its path or that number.
func (m Machine) device(name string) (number, wrong string) {
	if major, minor, ok := strings.Cut(name, ":"); ok {
		return plainNumber(major) + ":" + plainNumber(minor), ""
	}
	info, err := m.stat(name)
	if err != nil {
		return "", fmt.Sprintf("cannot be looked at (%v): name a block device, such as /dev/sda", reason(err))
	}
	major, minor, ok := blockDevice(info)
	if !ok {
		return "", "is not a block device: name one, such as /dev/sda"
	}
	return fmt.Sprintf("%d:%d", major, minor), ""
}

// plainNumber is one without zeros in front.
func plainNumber(digits string) string { return cmp.Or(strings.TrimLeft(digits, "0"), "0") }
