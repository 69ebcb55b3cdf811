package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/internal/testenv/vm/protocol"
)

const (
	initPackage = "github.com/toolhost/toolhost/internal/testenv/vm/init"
	guestSource = "/src" // the packages' folders in the guest are below it, named as in the repository
)

// skeleton is the guest's system beside its binaries: merged /usr, as on Debian, so that a sandbox finds what it binds.
var (
	skeletonDirs  = []string{"proc", "sys", "dev", "run", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/local/bin", "var/tmp", "home", "mnt"}
	skeletonLinks = map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
	skeletonFiles = map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":  "root:x:0:\nnogroup:x:65534:\n",
		"etc/hosts":  "127.0.0.1 localhost\n::1 localhost\n",
		// What tests mount over: the guest has no name server.
		"etc/resolv.conf": "",
	}
)

// buildImage writes the guest's initramfs into dir.
func buildImage(ctx context.Context, dir string, o options) (string, error) {
	initBinary := filepath.Join(dir, "init")
	if err := goBuild(ctx, "build", "-o", initBinary, initPackage); err != nil {
		return "", err
	}
	image := filepath.Join(dir, "initramfs.cpio")
	f, err := os.Create(image)
	if err != nil {
		return "", err
	}
	defer f.Close()
	a, err := begin(ctx, f, o)
	if err != nil {
		return "", err
	}
	if err := a.file("init", initBinary, 0o755); err != nil {
		return "", err
	}
	if err := packAdditions(a, o.add); err != nil {
		return "", err
	}
	if err := packJob(ctx, a, dir, o); err != nil {
		return "", err
	}
	return image, errors.Join(a.close(), f.Close())
}

// begin puts what the guest's system is into its image.
func begin(ctx context.Context, image io.Writer, o options) (*archive, error) {
	if !o.system {
		a := newArchive(image)
		packSkeleton(a)
		return a, nil
	}
	system, err := systemRoot(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot make the guest's system: %w", err)
	}
	if err := beginWith(image, system); err != nil {
		return nil, err
	}
	a := newArchive(image)
	packUnit(a)
	return a, nil
}

func packSkeleton(a *archive) {
	for _, name := range skeletonDirs {
		a.dir(name, 0o755)
	}
	a.dir("tmp", 0o777)
	a.dir("root", 0o700)
	for name, target := range skeletonLinks {
		a.symlink(name, target)
	}
	for name, data := range skeletonFiles {
		a.bytes(name, 0o644, data)
	}
}

func packAdditions(a *archive, additions []string) error {
	for _, addition := range additions {
		source, dest, ok := strings.Cut(addition, "=")
		if !ok {
			return fmt.Errorf("-add %s: want FILE=DEST", addition)
		}
		if err := a.file(dest, source, 0o755); err != nil {
			return fmt.Errorf("-add %s: %w", addition, err)
		}
	}
	return nil
}

func packJob(ctx context.Context, a *archive, dir string, o options) error {
	job := protocol.Job{Run: o.run, Skip: o.skip, Bench: o.bench, Times: o.times, Timeout: o.each, Env: o.env}
	if o.system {
		job.Env = append(job.Env, protocol.EnvSystem+"=1")
	}
	for i, name := range o.packages {
		p, err := packPackage(ctx, a, filepath.Join(dir, fmt.Sprintf("%d.test", i)), name)
		if err != nil {
			return err
		}
		job.Packages = append(job.Packages, p)
	}
	data, err := json.Marshal(job)
	if err != nil {
		return err
	}
	a.bytes(protocol.JobPath, 0o644, string(data))
	return nil
}

// packPackage builds a package's tests as a static binary and packs it with the package's testdata.
func packPackage(ctx context.Context, a *archive, binary, name string) (protocol.Package, error) {
	source, err := packageDir(ctx, name)
	if err != nil {
		return protocol.Package{}, err
	}
	if err := goBuild(ctx, "test", "-c", "-o", binary, name); err != nil {
		return protocol.Package{}, err
	}
	p := protocol.Package{Name: name, Dir: path.Join(guestSource, filepath.ToSlash(source.rel))}
	p.Binary = path.Join(p.Dir, path.Base(p.Dir)+".test")
	if err := a.file(p.Binary, binary, 0o755); errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("%s has no tests", name)
	} else if err != nil {
		return p, err
	}
	return p, packTestdata(a, filepath.Join(source.dir, "testdata"), path.Join(p.Dir, "testdata"))
}

func packTestdata(a *archive, source, dest string) error {
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			a.dir(path.Join(dest, filepath.ToSlash(rel)), 0o755)
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return a.file(path.Join(dest, filepath.ToSlash(rel)), file, info.Mode())
	})
}

type location struct{ dir, rel string } // rel is from the module's root

func packageDir(ctx context.Context, name string) (location, error) {
	out, err := command(ctx, "", "go", "list", "-f", "{{.Dir}}\n{{.Module.Dir}}", name)
	if err != nil {
		return location{}, err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		return location{}, fmt.Errorf("%s: name one package, not a pattern", name)
	}
	rel, err := filepath.Rel(lines[1], lines[0])
	return location{dir: lines[0], rel: rel}, err
}

// goBuild runs the go command for the guest: static, for its architecture, with nothing that a guest has no use for.
func goBuild(ctx context.Context, verb string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{verb, "-ldflags=-s -w"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s %s: %w", verb, strings.Join(args, " "), err)
	}
	return nil
}
