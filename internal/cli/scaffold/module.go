package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sdkModule is the module that package plugin is in.
const sdkModule = "github.com/toolhost/toolhost"

// SDKVar names a checkout of the SDK in the environment.
const SDKVar = "TOOLSDK_SDK"

// FindSDK finds a checkout of the SDK: the one that was named, else the one in
// $TOOLSDK_SDK, else one around the executable (which `make build` puts into
// the checkout's bin), else one around the working directory. Named ones must
// be right.
func FindSDK(named, executable, workDir string) (string, error) {
	for _, given := range []struct{ by, path string }{{"--sdk", named}, {"$" + SDKVar, os.Getenv(SDKVar)}} {
		if given.path == "" {
			continue
		}
		path, err := filepath.Abs(given.path)
		if err != nil {
			return "", err
		}
		if !isSDK(path) {
			return "", fmt.Errorf("%s %s is not a checkout of %s: name the folder with its go.mod", given.by, given.path, sdkModule)
		}
		return path, nil
	}
	if real, err := filepath.EvalSymlinks(executable); err == nil {
		executable = real
	}
	for _, from := range []string{filepath.Dir(executable), workDir} {
		for dir := from; ; dir = filepath.Dir(dir) {
			if isSDK(dir) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no release of %s is published and no checkout of it is near: name one with --sdk PATH, or in $%s", sdkModule, SDKVar)
}

func isSDK(dir string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return strings.Trim(fields[1], `"`) == sdkModule
		}
	}
	return false
}

// writeModule writes go.mod and go.sum.
func (o *Options) writeModule(ctx context.Context, p *Project) error {
	mod, sum, err := o.module()
	if err != nil {
		return err
	}
	if err := p.write("go.mod", mod); err != nil {
		return err
	}
	if len(sum) > 0 {
		if err := p.write("go.sum", sum); err != nil {
			return err
		}
	}
	if o.NoTidy {
		return nil
	}
	err = tidy(ctx, p.Dir)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	p.Warning = fmt.Sprintf("go mod tidy did not work (%v): run it later, when the network is there", err)
	if err := os.WriteFile(filepath.Join(p.Dir, "go.mod"), mod, 0o644); err != nil || len(sum) == 0 {
		return err
	}
	return os.WriteFile(filepath.Join(p.Dir, "go.sum"), sum, 0o644)
}

// goVersion is that of a project whose SDK is a release.
const goVersion = "1.26.0"

// module is go.mod, and go.sum where it is known. With a checkout, everything
// that the SDK needs is required: so it builds without a network wherever the
// SDK does, tidy or not.
func (o *Options) module() (mod, sum []byte, err error) {
	var b bytes.Buffer
	if o.Release != "" {
		fmt.Fprintf(&b, "module %s\n\ngo %s\n\nrequire %s %s\n", o.Module, goVersion, sdkModule, o.Release)
		return b.Bytes(), nil, nil
	}
	raw, err := os.ReadFile(filepath.Join(o.SDK, "go.mod"))
	if err != nil {
		return nil, nil, err
	}
	if sum, err = os.ReadFile(filepath.Join(o.SDK, "go.sum")); err != nil {
		return nil, nil, err
	}
	version, required := requirements(string(raw))
	fmt.Fprintf(&b, "module %s\n\ngo %s\n\nrequire %s v0.0.0\n\n", o.Module, version, sdkModule)
	fmt.Fprintf(&b, "// No release is published yet: this is the checkout that toolsdk came from.\nreplace %s => %s\n\nrequire (\n", sdkModule, quoted(o.SDK))
	for _, r := range required {
		fmt.Fprintf(&b, "\t%s // indirect\n", r)
	}
	b.WriteString(")\n")
	return b.Bytes(), sum, nil
}

// requirements reads the Go version and the `path version` pairs of a go.mod.
func requirements(mod string) (version string, required []string) {
	version = goVersion
	inBlock := false
	for line := range strings.Lines(mod) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "//")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[0] == "go":
			version = fields[1]
		case len(fields) == 2 && fields[0] == "require" && fields[1] == "(":
			inBlock = true
		case len(fields) == 1 && fields[0] == ")":
			inBlock = false
		case len(fields) == 3 && fields[0] == "require":
			required = append(required, fields[1]+" "+fields[2])
		case len(fields) == 2 && inBlock:
			required = append(required, fields[0]+" "+fields[1])
		}
	}
	return version, required
}

// quoted is a path as go.mod takes it.
func quoted(path string) string {
	if strings.ContainsAny(path, " \t\"'`()[]{},") || strings.Contains(path, "//") {
		return strconv.Quote(path)
	}
	return path
}

// tidyLimit is for a network that does not answer.
const tidyLimit = 2 * time.Minute

// tidy runs `go mod tidy`. Its error is one line.
func tidy(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, tidyLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("it took more than %s", tidyLimit)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return errors.New(last)
	}
	return err
}
