package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is one cgroup hierarchy that we use, with our directory in it.
type hierarchy struct {
	version     int
	controllers []string // those of allControllers that it serves for us; none for a bare cgroup2
	base        *dir     // where our directory is made
	tools       *dir     // toolhost-<pid>-<random>, flocked by us
	home        int      // v1: our own cgroup's tasks, to bring a thread back; -1 if out of sight
	files       map[string]bool
}

func (h *hierarchy) close() {
	h.base.close()
	h.tools.close()
	if h.home >= 0 {
		_ = unix.Close(h.home)
		h.home = -1
	}
}

// makeTools creates and locks our directory and learns what files it has.
func (h *hierarchy) makeTools(name string) error {
	if err := h.base.mkdir(name, 0o711); err != nil {
		return err
	}
	tools, err := lockedSub(h.base, name)
	if err != nil {
		return errors.Join(err, h.base.rmdir(name))
	}
	h.tools = tools
	names, err := tools.names(false)
	if err != nil {
		return err
	}
	h.files = make(map[string]bool, len(names))
	for _, n := range names {
		h.files[n] = true
	}
	return nil
}

// lockedSub opens and flocks a directory, and makes sure that it is still the
// one with that name. The lock lives as long as the open description does.
func lockedSub(base *dir, name string) (*dir, error) {
	d, err := base.sub(name)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(d.fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		d.close()
		return nil, pathError("flock", d.path, err)
	}
	var opened, named unix.Stat_t
	if err := errors.Join(unix.Fstat(d.fd, &opened), unix.Fstatat(base.fd, name, &named, unix.AT_SYMLINK_NOFOLLOW)); err != nil || opened.Ino != named.Ino {
		d.close()
		return nil, pathError("flock", d.path, errors.Join(unix.ESTALE, err))
	}
	return d, nil
}

// openVerified opens p in the first mount that shows it and really is the
// hierarchy that the mount table says: something else may be mounted over it.
func openVerified(mounts []mount, want func(mount) bool, p string) (*dir, error) {
	var errs []error
	for _, m := range mounts {
		rel, shown := m.relative(p)
		if !want(m) || !shown {
			continue
		}
		d, err := openMount(m, rel)
		if err == nil {
			return d, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil, os.ErrNotExist
	}
	return nil, errs[0]
}

func openMount(m mount, rel string) (*dir, error) {
	d, err := openDir(m.point + rel)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil || st.Dev != m.dev {
		d.close()
		return nil, pathError("open", d.path, errors.Join(unix.EXDEV, err))
	}
	return d, nil
}

// openV1 opens the v1 hierarchies of the wanted controllers, each with the base
// parent ("" for our own cgroup). Controllers without a v1 mount are left out.
func openV1(mounts []mount, own membership, parent string) ([]*hierarchy, error) {
	var list []*hierarchy
	for _, c := range allControllers {
		name := v1Name(c)
		ownPath, member := own.v1[name]
		if !member {
			continue
		}
		isMount := func(m mount) bool { return m.isV1(name) }
		if !slices.ContainsFunc(mounts, isMount) {
			continue
		}
		h, err := openOneV1(mounts, isMount, ownPath, parent)
		if err != nil {
			closeAll(list)
			return nil, unavailableV1(name, parent, ownPath, err)
		}
		list = addV1(list, h, c)
	}
	return list, nil
}

func unavailableV1(controller, parent, own string, err error) error {
	if parent != "" {
		return unavailableParent("the v1 hierarchy of controller "+controller, parent, err)
	}
	return &UnavailableError{"v1 directory of controller " + controller, own, cmp.Or(causeRemedy(err), PlaceRemedy()+", or boot with systemd.unified_cgroup_hierarchy=1"), err}
}

// checkParent refuses what would be another directory behind a mount point than it says.
func checkParent(p string) error {
	if p == "" || path.IsAbs(p) && strings.TrimSuffix(p, "/") == strings.TrimSuffix(path.Clean(p), "/") {
		return nil
	}
	return fmt.Errorf("parent cgroup %q is not a plain path from the root of the hierarchies: write one such as /agents.slice, or leave it out", p)
}

// unavailableParent says how to make a missing parent where the cause tells its
// directory, which a mount of our own (see openUnified) has not for others.
func unavailableParent(where, parent string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return &UnavailableError{"parent cgroup", parent, "name one that can be opened, or leave the parent out", fmt.Errorf("in %s: %w", where, err)}
	}
	create := ""
	if p, ok := errors.AsType[*fs.PathError](err); ok && path.IsAbs(p.Path) {
		create = fmt.Sprintf(", create it there (mkdir -p %s) and in every other hierarchy", p.Path)
	}
	return &UnavailableError{"parent cgroup", parent, "correct it" + create + ", or leave the parent out", fmt.Errorf("it does not exist in %s: %w", where, err)}
}

// addV1 merges controllers that share a hierarchy, such as cpu,cpuacct.
func addV1(list []*hierarchy, h *hierarchy, controller string) []*hierarchy {
	for _, old := range list {
		if sameDir(old.base, h.base) {
			old.controllers = append(old.controllers, controller)
			h.close()
			return list
		}
	}
	h.controllers = []string{controller}
	return append(list, h)
}

func sameDir(a, b *dir) bool {
	var sa, sb unix.Stat_t
	return unix.Fstat(a.fd, &sa) == nil && unix.Fstat(b.fd, &sb) == nil && sa.Dev == sb.Dev && sa.Ino == sb.Ino
}

func openOneV1(mounts []mount, want func(mount) bool, ownPath, parent string) (*hierarchy, error) {
	base, err := openVerified(mounts, want, cmp.Or(parent, ownPath))
	if err != nil {
		return nil, err
	}
	h := &hierarchy{version: 1, base: base, home: -1}
	home, err := openVerified(mounts, want, ownPath)
	if err != nil {
		return h, nil // the spawning thread is thrown away instead of brought back
	}
	defer home.close()
	if h.home, err = home.openFile("tasks", unix.O_WRONLY); err != nil {
		h.home = -1
	}
	return h, nil
}

func closeAll(list []*hierarchy) {
	for _, h := range list {
		h.close()
	}
}

// apply writes one value below our directory, prefix being "" or "c-name/".
func (h *hierarchy) apply(prefix string, w write) error {
	err := h.tools.write(prefix+w.file, w.value)
	if device, _, ok := strings.Cut(w.value, " "); ok && w.controller == ctrlIO && errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("IO limit for device %s: %w, or a partition: take the number of a whole disk from /proc/partitions", device, unix.ENODEV)
	}
	if err != nil {
		return fmt.Errorf("cannot set limit: %w", err)
	}
	return nil
}
