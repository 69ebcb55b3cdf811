package cgroup_test

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/toolhost/toolhost/cgroup"
)

// One call's life: limits, birth, kill, proof of death, usage.
func Example() {
	ctx := context.Background()
	root, err := cgroup.Open(ctx, cgroup.Options{})
	if err != nil {
		fmt.Println(err) // one line that says what to do about it
		return
	}
	defer root.Close()

	group, err := root.NewGroup("call-1", cgroup.Limits{MemoryBytes: 512 << 20, Pids: 64, CPUPercent: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := group.Start(cmd.SysProcAttr, cmd.Start); err != nil {
		fmt.Println(err)
	}
	_ = group.Lift()
	_ = group.Kill()
	_ = cmd.Wait()
	_ = group.WaitEmpty(ctx)
	usage, _ := group.Usage()
	_ = group.Remove()
	fmt.Println(usage.CPUUser, usage.OOMKills)
}
