package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/internal/testenv/vm/protocol"
)

const qemuName = "qemu-system-x86_64"

func findQEMU() (string, error) {
	qemu, err := exec.LookPath(qemuName)
	if err != nil {
		return "", fmt.Errorf("%s is missing: install Debian's package qemu-system-x86", qemuName)
	}
	return qemu, nil
}

// boot runs the guest to its end, showing its console.
func boot(ctx context.Context, qemu, image string, o options) (protocol.Report, error) {
	fmt.Printf("vm: boot %s with %s\n", o.kernel, strings.Join(o.packages, " "))
	cmd := exec.CommandContext(ctx, qemu,
		"-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot",
		// With a thread for each processor the guest hangs now and then.
		"-accel", "tcg,thread=single", "-cpu", "max", "-m", strconv.Itoa(o.memory), "-smp", strconv.Itoa(o.cpus),
		"-kernel", o.kernel, "-initrd", image,
		// Kernel messages below alert would break up the tests' lines: an OOM kill in a cgroup is routine here.
		"-append", strings.TrimSpace("console=ttyS0 loglevel=2 panic=-1 systemd.show_status=0 "+o.boot))
	cmd.Stderr = os.Stderr
	console, err := cmd.StdoutPipe()
	if err != nil {
		return protocol.Report{}, err
	}
	if err := cmd.Start(); err != nil {
		return protocol.Report{}, err
	}
	report, readErr := watch(console, os.Stdout)
	return report, errors.Join(readErr, cmd.Wait())
}

// watch shows the console until its end and collects the guest's result lines.
func watch(console io.Reader, show io.Writer) (protocol.Report, error) {
	var report protocol.Report
	reader := bufio.NewReaderSize(console, 64<<10)
	for {
		line, err := reader.ReadSlice('\n')
		text := strings.TrimRight(string(line), "\r\n")
		if err == nil {
			text += "\n"
		}
		report.Add(strings.TrimSuffix(text, "\n"))
		if _, err := io.WriteString(show, text); err != nil {
			return report, err
		}
		switch {
		case errors.Is(err, io.EOF):
			return report, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return report, err
		}
	}
}

// conclude prints the verdict and returns it as an error unless every wanted package passed.
func conclude(report protocol.Report, wanted []string) error {
	problems := report.Problems(wanted)
	for _, problem := range problems {
		fmt.Println("vm: FAIL", problem)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems in the guest", len(problems))
	}
	fmt.Printf("vm: PASS %s\n", strings.Join(wanted, " "))
	return nil
}
