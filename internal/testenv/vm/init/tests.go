package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/vm/protocol"
)

// patience is what a test binary gets beyond its own -test.timeout, and its left-over children after its end.
const patience = 10 * time.Second

// baseEnv is all that a test finds in its environment, but for the job's additions.
var baseEnv = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/root", "USER=root", "LANG=C.UTF-8", "TMPDIR=/tmp",
	protocol.EnvVM + "=1",
}

func runJob() error {
	data, err := os.ReadFile(protocol.JobPath)
	if err != nil {
		return err
	}
	var job protocol.Job
	if err := json.Unmarshal(data, &job); err != nil {
		return err
	}
	for _, p := range job.Packages {
		runPackage(job, p)
	}
	fmt.Printf("\n%s\n", protocol.DoneLine(len(job.Packages)))
	return nil
}

func runPackage(job protocol.Job, p protocol.Package) {
	ctx, cancel := context.WithTimeout(context.Background(), job.Timeout+patience)
	defer cancel()
	tally := protocol.NewTally(os.Stdout)
	cmd := exec.CommandContext(ctx, p.Binary, arguments(job)...)
	cmd.Dir, cmd.Env = p.Dir, append(baseEnv, job.Env...)
	cmd.Stdout, cmd.Stderr = tally, tally
	cmd.WaitDelay = patience
	exit := exitCode(cmd.Run())
	for _, name := range tally.Skipped() {
		fmt.Printf("\n%sskip pkg=%s test=%s", protocol.Prefix, p.Name, name)
	}
	fmt.Printf("\n%s\n", tally.Result(p.Name, exit))
}

func arguments(job protocol.Job) []string {
	args := []string{"-test.v=test2json", "-test.timeout=" + job.Timeout.String()}
	if job.Bench == "" {
		return append(args, "-test.run="+job.Run, "-test.skip="+job.Skip)
	}
	args = append(args, "-test.run=^$", "-test.bench="+job.Bench)
	if job.Times != "" {
		args = append(args, "-test.benchtime="+job.Times)
	}
	return args
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Printf("\ninit: %v\n", err)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}
