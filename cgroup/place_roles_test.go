package cgroup

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/hashicorp/go-hclog"
)

// opened is what role "open" tells about the place that it found.
type opened struct {
	Err         string
	Mode, Path  string
	Own         string // our cgroup2 path afterwards
	Controllers []string
	Born        string // the child's cgroup2 path
}

// open finds a place and starts a child in a group there. Arguments: a
// cgroup.procs file to enter first and a uid to become, both optional.
func open(args []string) {
	must(enter(args[0]))
	if uid := number(args[1]); uid != 0 {
		must(syscall.Setgid(uid))
		must(syscall.Setuid(uid))
	}
	r, err := Open(context.Background(), Options{})
	if err != nil {
		tell(opened{Err: err.Error()})
		return
	}
	own, err := readMembership()
	must(err)
	o := opened{Mode: r.Mode().String(), Path: r.Path(), Own: own.v2, Controllers: r.Controllers()}
	g, err := r.NewGroup("first", Limits{Pids: 20, MemoryBytes: 256 << 20})
	must(err)
	o.Born = bornIn(g)
	must(g.Remove())
	must(r.Close())
	tell(o)
}

// bornIn starts a child and returns its cgroup2 path.
func bornIn(g *Group) string {
	cmd := roleCommand("idle")
	out, err := cmd.StdoutPipe()
	must(err)
	must(g.Start(cmd.SysProcAttr, cmd.Start))
	if n, _ := out.Read(make([]byte, 1)); n == 0 {
		_ = cmd.Wait()
		return "died at birth"
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
	must(err)
	m, err := parseMembership(string(b))
	must(err)
	must(g.Kill())
	must(g.WaitEmpty(context.Background()))
	_ = cmd.Wait()
	return m.v2
}

func enter(procs string) error {
	if procs == "" {
		return nil
	}
	return os.WriteFile(procs, []byte("0"), 0)
}

func tell(v any) {
	b, err := json.Marshal(v)
	must(err)
	say("%s", b)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// doomed enters a cgroup that was killed before and then starts children,
// before and after Refresh.
func doomed(args []string) {
	must(enter(args[0]))
	r, err := Open(context.Background(), Options{})
	must(err)
	for i, refresh := range []bool{false, true} {
		if refresh {
			must(r.Refresh())
		}
		g, err := r.NewGroup("try"+strconv.Itoa(i), Limits{})
		must(err)
		say("%s", bornIn(g))
		must(g.Remove())
	}
	must(r.Close())
}

// inNamespace makes a role's cgroup2 view begin at the cgroup that it enters.
func inNamespace(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWCGROUP
	return cmd
}

// ask asks the system manager for a scope and tells our place then.
func ask([]string) {
	mounts, err := readMounts()
	must(err)
	own, err := readMembership()
	must(err)
	u, err := openUnified(mounts, own.v2, false)
	must(err)
	_, _, err = askForBase(context.Background(), u, Options{Logger: hclog.NewNullLogger()}, placeAskSystem)
	if err != nil {
		say("%v", err)
		return
	}
	own, err = readMembership()
	must(err)
	say("%s", own.v2)
}
