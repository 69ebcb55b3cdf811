//go:build !nofleet

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// insideTutorial is set in the namespaces of the test.
const insideTutorial = "TOOLHOST_TEST_TWO_MACHINES"

// The tutorial of docs/fleet.md, typed as it stands there on two machines. They are network
// namespaces with the tutorial's addresses, joined by a veth pair; the test runs in one of
// them, with mounts of its own.
func TestTheTutorialOnTwoMachines(t *testing.T) {
	stage.Of(t, "fleet")
	if os.Getenv(insideTutorial) != "" {
		typeTutorial(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Fatal("network namespaces take root: run the test as root")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), insideTutorial+"=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, said)
	}
}

// machine is a shell on one of the two.
type machine struct {
	t   *testing.T
	dir string
	pid int
	in  io.Writer
	out *bufio.Reader
}

func newMachine(t *testing.T, flags uintptr) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	cmd := exec.Command("bash")
	cmd.Dir, cmd.Env = m.dir, append(os.Environ(), "TOOLHOST_STATE="+filepath.Join(m.dir, "state"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	out, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = to, to
	if m.in, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = to.Close()
	m.pid, m.out = cmd.Process.Pid, bufio.NewReader(out)
	t.Cleanup(func() {
		m.run("kill -9 $(jobs -p); wait")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
	})
	return m
}

// killedJob is what bash itself says of a job that was killed, if it finds that out before
// the next command.
var killedJob = regexp.MustCompile(`^bash: line \d+: +\d+ Killed `)

// run types a command, and returns what is shown until it has ended.
func (m *machine) run(command string) string {
	m.t.Helper()
	const end = "-- end of command --"
	if _, err := fmt.Fprintf(m.in, "%s\necho '%s'\n", command, end); err != nil {
		m.t.Fatal(err)
	}
	var said strings.Builder
	for {
		line, err := m.out.ReadString('\n')
		if strings.HasSuffix(line, end+"\n") {
			said.WriteString(strings.TrimSuffix(line, end+"\n"))
			return said.String()
		}
		if !killedJob.MatchString(line) {
			said.WriteString(line)
		}
		if err != nil {
			m.t.Fatalf("the shell has ended at %s: %v\n%s", command, err, said.String())
		}
	}
}

// wired starts both machines, with the addresses 10.0.0.5 and 10.0.0.6.
func wired(t *testing.T) map[string]*machine {
	t.Helper()
	for _, err := range []error{
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=0755"), // whose sockets are the machine's
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	daemon, worker := newMachine(t, 0), newMachine(t, syscall.CLONE_NEWNET)
	const up = "ip link set lo up && ip addr add %s/24 dev eth0 && ip link set eth0 up"
	said := daemon.run(fmt.Sprintf("ip link add eth0 type veth peer name eth0 netns %d && "+up, worker.pid, "10.0.0.5"))
	said += worker.run(fmt.Sprintf(up, "10.0.0.6"))
	if said != "" {
		t.Fatal(said)
	}
	return map[string]*machine{"daemon": daemon, "worker": worker}
}

// step is a command of the tutorial, and what is shown of it.
type step struct{ machine, command, shown string }

// tutorialSteps are those of the section on two machines, and its configuration.
func tutorialSteps(t *testing.T) (steps []step, config string) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(raw), "## Two machines in five minutes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		if block[1] == "yaml" {
			config = block[2]
			continue
		}
		for line := range strings.Lines(block[2]) {
			if prompt, command, ok := strings.Cut(line, "$ "); ok && (prompt == "daemon" || prompt == "worker") {
				steps = append(steps, step{prompt, strings.TrimSpace(command), ""})
			} else if len(steps) > 0 {
				steps[len(steps)-1].shown += line
			}
		}
	}
	return steps, config
}

func typeTutorial(t *testing.T) {
	steps, config := tutorialSteps(t)
	if len(steps) < 12 || config == "" {
		t.Fatalf("only %d commands are found", len(steps))
	}
	machines, keys := wired(t), map[string]string{}
	fill := func(text string) string {
		for name, key := range keys {
			text = strings.ReplaceAll(text, name, key)
		}
		return text
	}
	for _, s := range steps {
		m, shown := machines[s.machine], strings.TrimSpace(s.shown)
		if strings.HasPrefix(s.command, "toolhost serve") { // by then there are the files that it needs
			prepareMachines(t, machines, fill(config))
		}
		if key := regexp.MustCompile(`^U[A-Z]+KEY$`); key.MatchString(shown) {
			keys[shown] = strings.TrimSpace(m.run(s.command))
			continue
		}
		want := shownPattern(shown)
		if polled := s.command == "toolhost fleet workers" || s.command == "toolhost ps"; polled {
			wait.Until(t, s.command+" shows "+shown, func() bool { return want.MatchString(m.run(s.command)) })
			continue
		}
		if said := m.run(fill(s.command)); !want.MatchString(said) {
			t.Fatalf("%s says\n%s\nand the tutorial\n%s\nserve.log: %s\nw1.log: %s", s.command, said, shown,
				machines["daemon"].run("cat serve.log"), machines["worker"].run("cat w1.log"))
		}
		if strings.HasPrefix(s.command, "toolhost serve") {
			awaitSocket(t, "/run/toolhost/toolhost.sock")
		}
	}
}

// prepareMachines does what the tutorial says in words: the configuration, and the copy of
// the certificate.
func prepareMachines(t *testing.T, machines map[string]*machine, config string) {
	t.Helper()
	daemon, worker := machines["daemon"], machines["worker"]
	pem, err := os.ReadFile(filepath.Join(daemon.dir, "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{filepath.Join(daemon.dir, "toolhost.yaml"): []byte(config), filepath.Join(worker.dir, "cert.pem"): pem} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func awaitSocket(t *testing.T, path string) {
	t.Helper()
	wait.Until(t, path, func() bool { _, err := os.Stat(path); return err == nil })
}

// shownPattern matches what a command says: "..." is any text, and any blanks are alike.
func shownPattern(shown string) *regexp.Regexp {
	text := regexp.MustCompile(`[ \t]+`).ReplaceAllString(regexp.QuoteMeta(shown), `[ \t]+`)
	return regexp.MustCompile(`(?s)^\s*` + strings.ReplaceAll(text, `\.\.\.`, `.*`) + `\s*$`)
}
