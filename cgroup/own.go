package cgroup

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// OwnMemoryLimit returns the least memory limit, in bytes, of the calling process's
// cgroup and its visible ancestors; ok is false if none of them has a limit.
// Sources: memory.max of cgroup2, memory.limit_in_bytes of v1.
func OwnMemoryLimit() (limit int64, ok bool) {
	mounts, own, err := ownPlace()
	if err != nil {
		return 0, false
	}
	return memoryLimit(mounts, own)
}

// OwnFolder returns the folder of the calling process's cgroup in cgroup2, or "" if no
// mount shows it.
func OwnFolder() string {
	mounts, own, err := ownPlace()
	if err != nil {
		return ""
	}
	return folder(mounts, own)
}

func folder(mounts []mount, own membership) string {
	for _, m := range mounts {
		if rel, shown := m.relative(own.v2); m.fstype == "cgroup2" && shown && own.v2 != "" {
			return path.Join(m.point, rel)
		}
	}
	return ""
}

func ownPlace() ([]mount, membership, error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, membership{}, err
	}
	own, err := readMembership()
	return mounts, own, err
}

func memoryLimit(mounts []mount, own membership) (limit int64, ok bool) {
	limit = math.MaxInt64
	for _, m := range mounts {
		place, file := own.v2, "memory.max"
		if m.isV1(ctrlMemory) {
			place, file = own.v1[ctrlMemory], fileMemoryV1
		} else if m.fstype != "cgroup2" {
			continue
		}
		if rel, shown := m.relative(place); shown && place != "" {
			limit = min(limit, leastAbove(m.point, rel, file))
		}
	}
	return limit, limit < unlimitedV1
}

// unlimitedV1 is less than what v1 shows where no limit is set: the largest
// multiple of a page.
const unlimitedV1 = math.MaxInt64 >> 1

// leastAbove reads a limit in a directory and in all above it, up to the mount.
func leastAbove(point, rel, file string) int64 {
	least := int64(math.MaxInt64)
	for {
		if b, err := os.ReadFile(path.Join(point, rel, file)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
				least = min(least, n)
			}
		}
		if rel == "/" || rel == "." || rel == "" {
			return least
		}
		rel = path.Dir(rel)
	}
}
