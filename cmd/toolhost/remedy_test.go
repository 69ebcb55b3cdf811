package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const apparmorProfile = "../../deploy/apparmor/toolhost"

func readText(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The profile is read by apparmor_parser, where there is one; one older than 4.0
// reads it without what that version brought. What every machine can check is its
// text, and that the packages install, load and unload it.
func TestAppArmorProfile(t *testing.T) {
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("needs the source, which the VM does not have")
	}
	text := readText(t, apparmorProfile)
	for _, line := range []string{"abi <abi/4.0>,", "profile toolhost /usr/bin/{toolhost,toolsdk} flags=(unconfined) {", "  userns,"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the profile has no line %q", line)
		}
	}
	const installed = "/etc/apparmor.d/toolhost"
	for script, parts := range map[string][]string{
		"deb/postinst": {"cp /usr/share/toolhost/apparmor/toolhost " + installed, "apparmor_parser -r -T -W " + installed, "abi/4.0"},
		"rpm/post":     {"cp /usr/share/toolhost/apparmor/toolhost " + installed, "apparmor_parser -r -T -W " + installed, "abi/4.0"},
		"deb/prerm":    {"apparmor_parser -R " + installed, "rm -f " + installed},
		"rpm/preun":    {"apparmor_parser -R " + installed, "rm -f " + installed},
	} {
		for _, part := range parts {
			if !strings.Contains(readText(t, "../../deploy/scripts/"+script), part) {
				t.Errorf("%s has no %q", script, part)
			}
		}
	}
	if !strings.Contains(readText(t, "../../deploy/build-packages"), `cp deploy/apparmor/* "$root/usr/share/toolhost/apparmor/"`) {
		t.Error("the packages do not have the profile")
	}
	parseProfile(t, text)
}

func parseProfile(t *testing.T, text string) {
	t.Helper()
	program, err := exec.LookPath("apparmor_parser")
	base := "/etc/apparmor.d"
	if err != nil {
		t.Log("missing: apparmor_parser (package apparmor): the profile's text alone was checked")
		return
	}
	if dir := os.Getenv("TOOLHOST_TEST_APPARMOR_BASE"); dir != "" {
		base = dir
	}
	if _, err := os.Stat(base + "/abi/4.0"); err != nil {
		t.Log("missing: AppArmor 4.0: the profile was checked without its userns rule")
		text = strings.NewReplacer("abi <abi/4.0>,\n", "", "  userns,\n", "").Replace(text)
	}
	file := filepath.Join(t.TempDir(), "toolhost")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "--skip-kernel-load", "--skip-cache", "--base", base, file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Where a remedy may send people.
var (
	standardPaths = regexp.MustCompile(`^/(bin|dev|etc/(apparmor\.d/toolhost|subuid|subgid|toolhost)|lib|proc|run|sbin|sys|tmp|usr|var|workspace)\b`)
	knownCommands = map[string]string{ // and the package that has them
		"sysctl": "procps", "loginctl": "systemd", "systemctl": "systemd", "docker": "docker.io", "chmod": "coreutils", "chown": "coreutils", "chgrp": "coreutils",
		"newuidmap": "uidmap", "newgidmap": "uidmap", "dmesg": "util-linux", "id": "coreutils",
	}
	remedyPaths    = regexp.MustCompile(`(?:^|[ (<"])((?:/|deploy/)[a-z][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)*)`)
	subcommands    = regexp.MustCompile(`\b(?:run|see|with|by) toolhost ([a-z]+)\b`)
	remedyCommands = regexp.MustCompile(`\b(?:set|run|see|install|with|\() ?([a-z]+ctl|ch(?:mod|own|grp)|docker|dmesg|new[ug]idmap|apt(?:-get)?|dnf|aa-[a-z]+|apparmor_parser|mount|modprobe)\b`)
	sysctls        = regexp.MustCompile(`\bsysctls? ((?:kernel|user|vm|fs|net)\.[a-z_.*-]+)`)
	knownSysctl    = map[string]bool{
		"kernel.apparmor_restrict_unprivileged_userns": true, "kernel.unprivileged_userns_clone": true, "user.max_user_namespaces": true,
		"vm.memfd_noexec": true, "user.max_*_namespaces": true, "fs.file-max": true,
	}
)

// proseWords follow the word toolhost in prose.
var proseWords = map[string]bool{"as": true, "is": true, "runs": true, "in": true, "where": true}

// Every path that an error or a remedy names is there, or brought along, and every
// command exists.
func TestRemediesNameWhatThereIs(t *testing.T) {
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("needs the source, which the VM does not have")
	}
	root, seen := newRoot(), 0
	for _, text := range literals(t, "../../sandbox", "../../cgroup", "../../supervisor", "../../internal/serve/daemon", "../../internal/journal/state", ".") {
		for _, m := range remedyPaths.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "deploy/") {
				t.Errorf("%q sends people to %s, which no package has there", text, m[1])
			}
		}
		if !isAdvice(text) {
			continue
		}
		seen++
		for _, m := range remedyPaths.FindAllStringSubmatch(text, -1) {
			if !standardPaths.MatchString(m[1]) {
				t.Errorf("%q names %s, which is neither standard nor brought along", text, m[1])
			}
		}
		for _, m := range subcommands.FindAllStringSubmatch(text, -1) {
			if found, _, err := root.Find([]string{m[1]}); !proseWords[m[1]] && (err != nil || found == root) {
				t.Errorf("%q names the command toolhost %s, which does not exist", text, m[1])
			}
		}
		for _, m := range remedyCommands.FindAllStringSubmatch(text, -1) {
			if knownCommands[m[1]] == "" {
				t.Errorf("%q names the command %s: note the package that has it", text, m[1])
			}
		}
		for _, m := range sysctls.FindAllStringSubmatch(text, -1) {
			if name := strings.TrimSuffix(m[1], "."); !knownSysctl[name] {
				t.Errorf("%q names the sysctl %s, which is not known", text, name)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d texts with advice were found", seen)
	}
}

var advice = regexp.MustCompile(`\b(set|run|install|allow|see|name|choose|make|give|raise|mount|remove) `)

func isAdvice(text string) bool { return strings.Contains(text, " ") && advice.MatchString(text) }

// literals are the texts in the programs of these folders.
func literals(t *testing.T, dirs ...string) (list []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						list = append(list, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}
