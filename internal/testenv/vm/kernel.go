package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// kernelMeta is Debian's package that always depends on the current cloud kernel: small, with cgroup v2 built in.
const kernelMeta = "linux-image-cloud-amd64"

// debianKernel is the path of Debian's cloud kernel. It is downloaded once, into the user's cache folder;
// to have a newer one, remove that folder.
func debianKernel(ctx context.Context) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	if kernel, err := newest(filepath.Join(cache, "vmlinuz-*")); err == nil {
		return kernel, nil
	}
	fmt.Println("vm: download Debian's cloud kernel to", cache)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "download-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	return fetchKernel(ctx, cache, dir)
}

func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "toolhost", "vm"), nil
}

// fetchKernel tries apt's package lists as they are, then once more after an update, which only root may do.
func fetchKernel(ctx context.Context, cache, dir string) (string, error) {
	deb, err := downloadKernel(ctx, dir)
	if err != nil && os.Geteuid() == 0 {
		if _, err := command(ctx, dir, "apt-get", "update", "-qq"); err != nil {
			return "", err
		}
		deb, err = downloadKernel(ctx, dir)
	}
	if err != nil {
		return "", fmt.Errorf("%w (as root, apt-get update may help; or give a vmlinuz by -kernel)", err)
	}
	if _, err := command(ctx, dir, "dpkg", "-x", deb, dir); err != nil {
		return "", err
	}
	extracted, err := newest(filepath.Join(dir, "boot", "vmlinuz-*"))
	if err != nil {
		return "", err
	}
	kernel := filepath.Join(cache, filepath.Base(extracted))
	return kernel, os.Rename(extracted, kernel)
}

func downloadKernel(ctx context.Context, dir string) (string, error) {
	depends, err := command(ctx, dir, "apt-cache", "depends", kernelMeta)
	if err != nil {
		return "", err
	}
	name, err := kernelPackage(depends)
	if err != nil {
		return "", err
	}
	if _, err := command(ctx, dir, "apt-get", "download", name); err != nil {
		return "", err
	}
	return newest(filepath.Join(dir, name+"_*.deb"))
}

// kernelPackage finds the kernel in the output of apt-cache depends.
func kernelPackage(depends string) (string, error) {
	for line := range strings.Lines(depends) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: ")
		if ok && strings.HasPrefix(name, "linux-image-") {
			return name, nil
		}
	}
	return "", fmt.Errorf("apt knows no dependency of %s", kernelMeta)
}

// newest is the last match in lexical order.
func newest(pattern string) (string, error) {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	if len(matches) == 0 {
		return "", fmt.Errorf("no file %s", pattern)
	}
	return slices.Max(matches), nil
}

// command runs a program and shows what it said only if it failed.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err), errors.New(strings.TrimSpace(stderr.String())))
	}
	return string(out), nil
}
