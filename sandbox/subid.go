package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// errNoRange says that an unprivileged host has no users for calls.
type errNoRange struct{ reason, remedy string }

func (e *errNoRange) Error() string { return e.reason + "; " + e.remedy }

// subordinate finds the caller's range in /etc/subuid and /etc/subgid
// (subuid(5)) and checks that the programs that may map it are there.
func subordinate(uidFile, gidFile string) (idRange, error) {
	for _, program := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(program); err != nil {
			return idRange{}, &errNoRange{"there is no " + program, "install it (Debian, Ubuntu: apt install uidmap; Fedora: dnf install shadow-utils)"}
		}
	}
	names := callerNames()
	uids, uidCount, err := findRange(uidFile, names)
	if err != nil {
		return idRange{}, err
	}
	gids, gidCount, err := findRange(gidFile, names)
	if err != nil {
		return idRange{}, err
	}
	return idRange{uids, gids, 1, min(uidCount, gidCount, maxSlots)}, nil
}

// callerNames are what the caller may be called in subuid(5).
func callerNames() []string {
	names := []string{strconv.Itoa(os.Geteuid())}
	if u, err := user.LookupId(names[0]); err == nil {
		names = append(names, u.Username)
	}
	return names
}

func findRange(path string, names []string) (start, count int, err error) {
	missing := &errNoRange{
		fmt.Sprintf("%s grants no ids to %s", path, names[len(names)-1]),
		fmt.Sprintf("let root add a line with a range that nobody has, such as: echo %q >>%s", names[len(names)-1]+":524288:65536", path),
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, missing
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		f := strings.Split(lines.Text(), ":")
		if len(f) != 3 || !slices.Contains(names, f[0]) {
			continue
		}
		start, err1 := strconv.Atoi(f[1])
		count, err2 := strconv.Atoi(f[2])
		if errors.Join(err1, err2) == nil && start > 0 && count > 0 {
			return start, count, nil
		}
	}
	return 0, 0, missing
}

// mapRange maps the caller to 0 and its range to 1 and up in the user namespace
// of pid.
func mapRange(pid int, ids idRange) error {
	for _, m := range []struct {
		program      string
		self, others int
	}{{"newuidmap", os.Geteuid(), ids.outsideUID}, {"newgidmap", os.Getegid(), ids.outsideGID}} {
		out, err := exec.Command(m.program, strconv.Itoa(pid), "0", strconv.Itoa(m.self), "1", "1", strconv.Itoa(m.others), strconv.Itoa(ids.count)).CombinedOutput()
		if err != nil {
			return &errNoRange{
				fmt.Sprintf("%s failed: %s", m.program, strings.TrimSpace(string(out)+" "+err.Error())),
				"check that it is setuid root or has file capabilities",
			}
		}
	}
	return nil
}

// asItself maps nobody but the caller. It is done before the first program is executed:
// afterwards no_new_privs would keep that from becoming the namespace's root.
func asItself() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
}
