package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/toolhost/toolhost/internal/testenv/vm/protocol"
)

// systemSuite is the Debian in which -system runs tests: the one of the kernel.
const systemSuite = "bookworm"

//go:embed system-root
var systemRootScript []byte

// systemUnit runs the job, and ends the machine however that went.
const systemUnit = `[Unit]
Description=tests
After=multi-user.target
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate

[Service]
Type=oneshot
ExecStart=/init runner
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity
`

// systemRoot is the path of the guest's system, which is made once, in the
// user's cache folder; another script makes another one.
func systemRoot(ctx context.Context) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, fmt.Sprintf("system-%s-%08x.cpio.gz", systemSuite, crc32.ChecksumIEEE(systemRootScript)))
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	if os.Geteuid() != 0 {
		return "", errors.New("the guest's system is made by root: run this once with sudo and your own $HOME, or as root")
	}
	fmt.Println("vm: make a Debian", systemSuite, "with systemd in", cache)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	half := root + ".new"
	cmd := exec.CommandContext(ctx, "sh", "-s", systemSuite, half)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(systemRootScript), os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("system-root: %w", err)
	}
	return root, os.Rename(half, root)
}

// beginWith writes a compressed archive before the one to come: the kernel
// unpacks one after the other, and skips zeros between them.
func beginWith(image io.Writer, system string) error {
	f, err := os.Open(system)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(image, f)
	if err != nil {
		return err
	}
	_, err = image.Write(make([]byte, 3-(n+3)%4))
	return err
}

func packUnit(a *archive) {
	const dir = "etc/systemd/system/"
	a.bytes(dir+protocol.SystemUnit, 0o644, systemUnit)
	a.symlink(dir+"default.target.wants/"+protocol.SystemUnit, "../"+protocol.SystemUnit)
	a.symlink(dir+"default.target", "/lib/systemd/system/multi-user.target")
}
