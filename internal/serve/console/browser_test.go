package console

import (
	"bufio"
	"context"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/stage"
)

// Where the tests in JavaScript are, and what they need.
const (
	testFolder   = "test"
	browserLimit = 10 * time.Minute // for all of them; only there to end a hang
)

// missing skips a test by name for what this machine lacks; CI must have it.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	missing(t, "no %s in PATH: install it", strings.Join(names, " or "))
	return ""
}

// node runs node's own test runner, and shows what it says.
func node(t *testing.T, environment []string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), browserLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "node"), args...)
	cmd.Dir, cmd.Env = testFolder, append(os.Environ(), environment...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ran := relay(t, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("node %s: %v", strings.Join(args, " "), err)
	}
	if !ran {
		t.Error("no test was run")
	}
}

// relay logs the runner's lines; ran says whether one tells of a test.
func relay(t *testing.T, out io.Reader) (ran bool) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		ran = ran || strings.HasPrefix(strings.TrimSpace(lines.Text()), "✔ ")
		t.Log(lines.Text())
	}
	return ran
}

// What is pure is tested without a browser.
func TestModules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testFolder, "unit", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of modules: %v", err)
	}
	for i, file := range files {
		files[i], _ = filepath.Rel(testFolder, file)
	}
	node(t, nil, append([]string{"--test", "--test-reporter=spec"}, files...)...)
}

// TestInABrowser has a headless Chromium use the console of a daemon.
func TestInABrowser(t *testing.T) {
	stage.Of(t, "browser")
	browse(t, "browser.test.mjs")
}

// TestPictures takes pictures for people to look at, into the folder that
// CONSOLE_PICTURES names.
func TestPictures(t *testing.T) {
	if os.Getenv("CONSOLE_PICTURES") == "" {
		t.Skip("for people: set CONSOLE_PICTURES to a folder")
	}
	browse(t, "pictures.test.mjs")
}

func browse(t *testing.T, script string) {
	t.Helper()
	chromium := program(t, "chromium", "chromium-browser", "google-chrome")
	modules(t)
	d := newDaemon(t)
	control := httptest.NewServer(d.control())
	defer control.Close()
	node(t, []string{
		"CONSOLE_OPEN=http://" + d.open, "CONSOLE_GUARDED=http://" + d.guarded, "CONSOLE_CONTROL=" + control.URL,
		"CONSOLE_TOKEN=" + testToken, "CONSOLE_CHROMIUM=" + chromium,
	}, "--test", "--test-reporter=spec", script)
}

// modules installs what package-lock.json names, unless it is there.
func modules(t *testing.T) {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(testFolder, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(testFolder, "node_modules", ".toolhost-lock")
	if have, err := os.ReadFile(mark); err == nil && string(have) == string(lock) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), browserLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = testFolder
	if out, err := cmd.CombinedOutput(); err != nil {
		missing(t, "npm cannot install what the browser tests need: %v\n%s", err, out)
	}
	if err := os.WriteFile(mark, lock, 0o644); err != nil {
		t.Fatal(err)
	}
}
