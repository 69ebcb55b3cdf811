package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommittedFilesAreFresh(t *testing.T) {
	tables, err := findNumbers()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range architectures {
		fresh, err := generate(arch, tables)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range fresh {
			committed, err := os.ReadFile(filepath.Join("..", name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(content, committed) {
				t.Errorf("%s is stale: run go generate ./sandbox/internal/seccomp", name)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	tables, err := findNumbers()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		amd64, arm64 uint32
	}{
		{"read", 0, 63},
		{"execve", 59, 221},
		{"clone", 56, 220},
		{"prctl", 157, 167},
		{"fcntl", 72, 25},
		{"prlimit64", 302, 261},
		{"clone3", 435, 435},
		{"open_tree_attr", 467, 467},
	} {
		if amd64, arm64 := tables["amd64"][c.name], tables["arm64"][c.name]; amd64 != c.amd64 || arm64 != c.arm64 {
			t.Errorf("%s is %d and %d, want %d and %d", c.name, amd64, arm64, c.amd64, c.arm64)
		}
	}
	if _, ok := tables["arm64"]["open"]; ok {
		t.Error("arm64 has no open(2)")
	}
}

func TestParseNumbersRefuses(t *testing.T) {
	for _, source := range []string{
		"package p; const SYS_A = 1 + 1", "package p; const SYS_A, SYS_B = 1, 2", "package p; const B = 1",
		`package p; const SYS_A = "1"`, "package p; type SYS_A int", "package",
	} {
		if table, err := parseNumbers([]byte(source)); err == nil {
			t.Errorf("%s: read as %v", source, table)
		}
	}
}

// Docker's profile and the policy must not drift apart unseen.
func TestDecideRefuses(t *testing.T) {
	tables, err := findNumbers()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(dockerProfile)
		want   string
	}{
		{"new rule", func(d dockerProfile) { d.byArgs["read"] = d.byArgs["socket"] }, "docker looks at the arguments of read"},
		{"refused by docker", func(d dockerProfile) { delete(d.plain, "ioctl") }, "docker refuses ioctl"},
		{"unknown name", func(d dockerProfile) { d.known["lock_pick"] = true }, `docker names "lock_pick"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			docker := resolveDocker("amd64")
			c.change(docker)
			if _, err := decide(docker, tables, false); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}

func TestResolveDocker(t *testing.T) {
	for _, c := range []struct {
		arch, name    string
		plain, byArgs bool
	}{
		{"amd64", "read", true, false},
		{"amd64", "mount", false, false}, // needs a capability
		{"amd64", "ptrace", true, false}, // needs Linux 4.8
		{"amd64", "arch_prctl", true, false},
		{"arm64", "arch_prctl", false, false},
		{"amd64", "clone", false, true},
		{"amd64", "clone3", false, false}, // has an error of its own
	} {
		docker := resolveDocker(c.arch)
		if plain, byArgs := docker.plain[c.name], docker.byArgs[c.name] != nil; plain != c.plain || byArgs != c.byArgs {
			t.Errorf("%s on %s: plain %v, by arguments %v", c.name, c.arch, plain, byArgs)
		}
		if !docker.known[c.name] {
			t.Errorf("%s is not known", c.name)
		}
	}
	if rules := resolveDocker("s390x").byArgs["clone"]; len(rules) != 1 || rules[0].Args[0].Index != 1 {
		t.Errorf("s390x has the flags of clone(2) in its second argument: %v", rules)
	}
	if got := resolveDocker("amd64").firstArgs("personality"); !slices.Equal(got, []uint32{0, 8, 0x20000, 0x20008, 0xffffffff}) {
		t.Errorf("personalities are %#x", got)
	}
}

// No filter runs a call that Docker's does not.
func TestNeverLooserThanDocker(t *testing.T) {
	eachSubject(t, func(t *testing.T, s subject) {
		docker := resolveDocker(s.arch.name)
		for name, d := range s.filter.decisions {
			_, byArgs := docker.byArgs[name]
			if d == allow && !docker.plain[name] || !byArgs && !docker.plain[name] && d != refuse && d != hide {
				t.Errorf("%s is refused by Docker", name)
			}
		}
	})
}
