package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// surroundings decide what gets this process cgroups of its own.
type surroundings struct {
	systemd bool // systemd manages this host
	uid     int
	runtime string // $XDG_RUNTIME_DIR, by which a user's manager is found
}

func look() surroundings {
	return surroundings{hasSystemd(), os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR")}
}

// hasSystemd is sd_booted(3).
func hasSystemd() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// PlaceRemedy returns the command that provides a place in the cgroup tree.
func PlaceRemedy() string { return look().place() }

// placeRemedy is how to get what an error lacked, or else such a place.
func placeRemedy(err error) string { return cmp.Or(causeRemedy(err), PlaceRemedy()) }

// causeRemedy is how to get what a system call lacked, or "" if that is not known.
func causeRemedy(err error) string {
	if errors.Is(err, unix.EAGAIN) { // of mkdir
		return "raise cgroup.max.descendants and cgroup.max.depth of the cgroups above, one of which is reached"
	}
	return ""
}

func (s surroundings) place() string {
	const parent = "name a cgroup that you may write to: --cgroup-parent /PATH, or cgroupParent in toolhost.yaml"
	switch {
	case s.systemd && s.uid == 0:
		return "type: systemd-run --scope -p Delegate=yes toolhost ... (or use the service: systemctl start toolhost), or " + parent
	case s.systemd:
		return s.userScope() + ", or " + parent
	case s.uid == 0:
		return "mount the cgroup file systems writable, or " + parent
	}
	return "run it as root: sudo toolhost ..., or " + parent
}

func (s surroundings) userScope() string {
	var first string
	if s.runtime == "" {
		first = fmt.Sprintf("loginctl enable-linger %d (as root), export XDG_RUNTIME_DIR=/run/user/%d, ", s.uid, s.uid)
	}
	return "type: " + first + "systemd-run --user --scope -p Delegate=yes toolhost ... (or use the service: systemctl --user start toolhost)"
}

// ControllerRemedy returns the command that provides a controller that this process lacks.
func ControllerRemedy(name string) string {
	mounts, own, err := ownPlace()
	if err == nil && unmounted(v1Name(name), mounts, own) {
		return fmt.Sprintf("mount its cgroup v1 hierarchy where toolhost runs: mount -t cgroup -o %s none DIR", v1Name(name))
	}
	return look().controller(name)
}

// unmounted says whether a controller is in a v1 hierarchy that is mounted nowhere
// here, as in a chroot of such a host.
func unmounted(controller string, mounts []mount, own membership) bool {
	_, v1 := own.v1[controller]
	return v1 && !slices.ContainsFunc(mounts, func(m mount) bool { return m.isV1(controller) })
}

func (s surroundings) controller(name string) string {
	boot := "boot with cgroup_enable=" + name
	switch {
	case s.systemd && s.uid == 0:
		return "type: systemd-run --scope -p Delegate=yes toolhost ..., or " + boot
	case s.systemd:
		return `type as root: systemctl edit user@.service, with the lines [Service] and Delegate=` + strings.Join(delegated, " ") + ", and log in again, or " + boot
	}
	return "enable it in cgroup.subtree_control of the cgroups above, or " + boot
}

// delegated are the controllers that a user's manager should have.
var delegated = []string{"cpu", "cpuset", "io", "memory", "pids"}
