package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// judge is go-judge's daemon as it is without flags, but for its log, and for its
// cgroups, which are in ours.
func judge(c contestant, program, _ string) (contestant, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return c, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return c, err
	}
	c.daemon = func(group string) []string {
		return []string{program, "-http-addr", address, "-release", "-silent", "-cgroup-prefix", filepath.Join(group, judgeGroup)}
	}
	c.paced = true
	c.ready = func(ctx context.Context) error { return judgeTrue(ctx, address) }
	c.run = func(ctx context.Context, _ int, _ execute) error { return judgeTrue(ctx, address) }
	c.left = removeJudged
	return c, nil
}

const judgeGroup = "judge"

// removeJudged removes the cgroups that go-judge leaves behind in hierarchies that
// ours are not in.
func removeJudged(group string) error {
	trees, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", group, judgeGroup))
	for _, tree := range trees {
		below, _ := filepath.Glob(filepath.Join(tree, "*", "cgroup.procs"))
		for _, file := range below {
			err = errors.Join(err, syscall.Rmdir(filepath.Dir(file)))
		}
		err = errors.Join(err, syscall.Rmdir(tree))
		for dir := filepath.Dir(tree); syscall.Rmdir(dir) == nil; dir = filepath.Dir(dir) {
		}
	}
	return err
}

// judged keeps as many connections as there are callers.
var judged = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}

// judgeTrue has go-judge run a command, with the limits of its documentation's example.
func judgeTrue(ctx context.Context, address string) error {
	const body = `{"cmd":[{"args":["/bin/true"],"env":["PATH=/usr/bin:/bin"],"files":[{"content":""},{"name":"stdout","max":10240},{"name":"stderr","max":10240}],"cpuLimit":10000000000,"memoryLimit":104857600,"procLimit":50}]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/run", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := judged.Do(request)
	if err != nil {
		return err
	}
	var results []struct{ Status, Error string }
	err = json.NewDecoder(response.Body).Decode(&results)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if len(results) != 1 || results[0].Status != "Accepted" {
		return fmt.Errorf("go-judge answered with %v, status %s", results, response.Status)
	}
	return nil
}

// boxes are isolate's, one for each run at a time, made before the first run.
func boxes(c contestant, program, _ string) (contestant, error) {
	const most = 64
	var free chan string
	c.run = func(_ context.Context, _ int, execute execute) error {
		box := <-free
		defer func() { free <- box }()
		return execute(program, "--run", "--silent", "--box-id="+box, "--", "/bin/true")
	}
	c.begin = func() error {
		free = make(chan string, most)
		for box := range most {
			id := strconv.Itoa(box)
			if out, err := exec.Command(program, "--init", "--box-id="+id).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
			}
			free <- id
		}
		return nil
	}
	c.end = func() error {
		var errs []error
		for range len(free) {
			errs = append(errs, exec.Command(program, "--cleanup", "--box-id="+<-free).Run())
		}
		return errors.Join(errs...)
	}
	return c, nil
}
