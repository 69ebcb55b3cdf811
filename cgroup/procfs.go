package cgroup

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/containerd/cgroups/v3"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/text"
)

// mount is one cgroup line of /proc/self/mountinfo. Source: proc(5).
type mount struct {
	root    string // cgroup path that the mount shows, as our cgroup namespace sees it
	point   string
	fstype  string // cgroup or cgroup2
	dev     uint64
	options []string // of the superblock: v1 controller names, v2 flags
}

// parseMountinfo keeps the cgroup mounts, in order. A line that it can't read
// is skipped: other file systems may put anything there.
func parseMountinfo(table string) []mount {
	var list []mount
	for line := range strings.Lines(table) {
		if m, ok := parseMountLine(strings.TrimRight(line, "\n")); ok {
			list = append(list, m)
		}
	}
	return list
}

func parseMountLine(line string) (mount, bool) {
	left, right, ok := strings.Cut(line, " - ")
	l, r := strings.Fields(left), strings.Fields(right)
	if !ok || len(l) < 6 || len(r) < 3 || r[0] != "cgroup" && r[0] != "cgroup2" {
		return mount{}, false
	}
	var major, minor uint32
	if _, err := fmt.Sscanf(l[2], "%d:%d", &major, &minor); err != nil {
		return mount{}, false
	}
	return mount{
		root: text.MountPath(l[3]), point: text.MountPath(l[4]), fstype: r[0],
		dev: unix.Mkdev(major, minor), options: strings.Split(r[2], ","),
	}, true
}

// isV1 tells whether the mount is the v1 hierarchy of the named controller.
func (m mount) isV1(name string) bool {
	return m.fstype == "cgroup" && slices.Contains(m.options, name)
}

// relative returns where cgroup path p is below the mount point. A mount of
// another part of the hierarchy, or of one above our namespace, doesn't show it.
func (m mount) relative(p string) (string, bool) {
	if p == ".." || strings.HasPrefix(p, "/..") || strings.HasPrefix(m.root, "/..") {
		return "", false
	}
	if m.root == "/" {
		return p, true
	}
	rest, ok := strings.CutPrefix(p, m.root)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return "/" + strings.TrimPrefix(rest, "/"), true
}

// membership is our place in every hierarchy.
type membership struct {
	v1 map[string]string // v1 controller name -> cgroup path
	v2 string            // "" if the kernel has no cgroup2
}

func parseMembership(text string) (membership, error) {
	v1, v2, err := cgroups.ParseCgroupFromReaderUnified(strings.NewReader(text))
	if err != nil {
		return membership{}, fmt.Errorf("cannot parse /proc/self/cgroup: %w", err)
	}
	return membership{v1: v1, v2: v2}, nil
}

func readMembership() (membership, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return membership{}, &UnavailableError{"process's cgroup", "/proc/self/cgroup", "mount /proc", err}
	}
	return parseMembership(string(b))
}

func readMounts() ([]mount, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, &UnavailableError{"mount table", "/proc/self/mountinfo", "mount /proc", err}
	}
	return parseMountinfo(string(b)), nil
}
