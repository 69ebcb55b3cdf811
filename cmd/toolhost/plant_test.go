package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// planted is a configuration that a tool would like to be taken.
const planted = `echo "tools: {own: {command: [id, -u], tier: none}}" > `

// tree makes files below a folder of the test's own; a name that ends in / is a folder.
func tree(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func needShell(t *testing.T) {
	t.Helper()
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("needs a shell, which the VM does not have")
	}
}

// What a tool may write is never a configuration that the next command takes.
func TestToolsCannotPlantAConfiguration(t *testing.T) {
	t.Parallel()
	needShell(t)
	const at = "etc/toolhost.yaml"
	for name, c := range map[string]struct{ include, more, grant, script string }{
		"a new file of a pattern":         {"[conf.d/*.yaml]", "etc/conf.d/", ".", planted + "conf.d/z.yaml"},
		"a changed file of a pattern":     {"[conf.d/*.yaml]", "etc/conf.d/a.yaml", ".", planted + "conf.d/a.yaml"},
		"another folder for a pattern":    {"[conf.d/*.yaml]", "etc/conf.d/a.yaml", ".", "mv conf.d old; mkdir conf.d; " + planted + "conf.d/z.yaml"},
		"a new folder of a pattern":       {"['conf.d/*/tools.yaml']", "etc/conf.d/a/", ".", "mkdir conf.d/b; " + planted + "conf.d/b/tools.yaml"},
		"another folder for the file":     {"[]", "etc/x", "..", "cd ..; mv etc old; mkdir etc; " + planted + at},
		"another folder above":            {"[deep/below/*.yaml]", "etc/deep/below/", "..", "mv deep old; mkdir -p deep/below; " + planted + "deep/below/z.yaml"},
		"the file removed and made again": {"[]", "etc/x", ".", "rm -f toolhost.yaml; " + planted + "toolhost.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, map[string]string{
				c.more: "classes: {a: {memory: 1GiB}}\n",
				at:     "state: none\ninclude: " + c.include + "\ntools: {look: {command: [sh, -c, '{code}'], write: ['" + c.grant + "'], dir: .}}\n",
			})
			out, code := runIn(dir, testBinary(t), "run", "--quiet", "--config", at, "look", "code="+c.script+"; echo kept > "+dir+"/etc/free; ls -R "+dir)
			if code != 0 {
				t.Errorf("%d: %s", code, out)
			}
			if taken, code := runIn(dir, testBinary(t), "run", "--quiet", "--config", at, "own"); code == 0 || !strings.Contains(taken, `no tool "own"`) {
				t.Errorf("the planted tool: %d: %s after %s", code, taken, out)
			}
			if text, err := os.ReadFile(dir + "/etc/free"); err != nil || string(text) != "kept\n" {
				t.Errorf("beside the configuration the tool has made %q, %v: %s", text, err, out)
			}
		})
	}
}

// What a tool plants is not there either when a daemon reads its configuration again.
func TestToolsCannotPlantWhatADaemonReloads(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"conf.d/a.yaml": "classes: {a: {memory: 1GiB}}\n"})
	d := serve(t, "include: ["+dir+"/conf.d/*.yaml]\ntools: {look: {command: [sh, -c, '{code}'], write: ["+dir+"]}}\n")
	call := func(args ...string) (string, int) {
		return runIn(dir, testBinary(t), append([]string{"call", "--socket", d.socket}, args...)...)
	}
	if out, code := call("look", "code=cd "+dir+"; "+planted+"conf.d/z.yaml; mv conf.d old; mkdir conf.d; "+planted+"conf.d/z.yaml; "+planted+"free"); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	if _, err := os.Stat(dir + "/free"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(dir+"/conf.d/b.yaml", []byte("tools: {mine: {command: [id]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(d.pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the reload", func() bool { _, code := call("mine"); return code == 0 })
	if out, code := call("own"); code == 0 {
		t.Errorf("the planted tool: %s", out)
	}
}

// Where nothing could be mounted the grant is refused, with what to do.
func TestGrantsBesideWhatIsReadAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ include, grant, want string }{
		{"['tools-*.yaml']", "[.]", "toolhost's own"},
		{"[conf.d/*.yaml]", "[.]", "make it first"},
		{"[conf.d/*.yaml]", "[..]", "make it first"},
		{"[there/*.yaml]", "[there]", "toolhost's own"},
		{"[there/*.yaml]", "[there/sub]", "toolhost's own"},
		{"[link.yaml]", "[.]", "is a link"},
		{"[link/*.yaml]", "[.]", "is a link"},
		{"[there/*.yaml]", "[beside]", ""},
		{"[conf.d/*.yaml]", "[beside]", ""},
		{"[link.yaml]", "[beside]", ""},
		{"[there/*.yaml]", "[.]", ""},
	} {
		dir := tree(t, map[string]string{
			"etc/there/sub/": "", "etc/beside/": "", "far/x.yaml": "classes: {a: {memory: 1GiB}}\n",
			"etc/toolhost.yaml": "state: none\ninclude: " + c.include + "\ntools: {look: {command: [id], write: " + c.grant + "}}\n",
		})
		for from, to := range map[string]string{"link.yaml": "../far/x.yaml", "link": "../far"} {
			if err := os.Symlink(to, filepath.Join(dir, "etc", from)); err != nil {
				t.Fatal(err)
			}
		}
		out, code := runIn(dir, testBinary(t), "config", "validate", "--config", "etc/toolhost.yaml")
		if (code == 0) != (c.want == "") || !strings.Contains(out, c.want) {
			t.Errorf("%+v: %d: %s", c, code, out)
		}
	}
}

// A state folder in the project is made before the first call, and hidden from it.
func TestTheStateIsMadeBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := tree(t, map[string]string{"p/toolhost.yaml": "state: state\ntools: {look: {command: [sh, -c, 'ls state; mv state s; ls'], write: [.], dir: .}}\n"})
	for range 2 {
		if out, code := runIn(dir, testBinary(t), "run", "--quiet", "--config", "p/toolhost.yaml", "look"); code != 0 || !strings.HasSuffix(out, "state\ntoolhost.yaml\n") || strings.Contains(out, "journal") {
			t.Errorf("%d: %s", code, out)
		}
	}
}

// keyed is a configuration with all kinds of files that hold keys.
const keyed = "secrets: {weather: {file: $/secret}}\ntls: {cert: $/cert.pem, key: $/tls.key}\nfleet: {listen: 127.0.0.1:0, cert: $/fleet.pem, certKey: $/fleet.pem.key, key: $/fleet.key}\n"

var keyFiles = []string{"secret", "cert.pem", "tls.key", "fleet.pem", "fleet.pem.key", "fleet.key"}

func TestKeysAndSecretsAreInNoGrant(t *testing.T) {
	t.Parallel()
	needShell(t)
	files := map[string]string{}
	for _, name := range keyFiles {
		files["k/"+name] = "topsecret"
	}
	dir := tree(t, files)
	write := func(tools string) string {
		path := filepath.Join(dir, "toolhost.yaml")
		text := strings.ReplaceAll(keyed, "$", dir+"/k") + "state: none\ntools: {" + tools + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, how := range []string{"read", "write"} {
		path := write("look: {command: [sh, -c, 'cd k; cat *; for f in *; do echo x >> $$f; mv $$f $$f.old; done; mv ../k ../l'], " + how + ": [.], dir: .}")
		if out, _ := runIn(dir, testBinary(t), "run", "--config", path, "look"); strings.Contains(out, "topsecret") || !strings.Contains(out, "fleet.key") {
			t.Errorf("%s: %s", how, out)
		}
		for _, name := range keyFiles {
			if text, err := os.ReadFile(dir + "/k/" + name); err != nil || string(text) != "topsecret" {
				t.Errorf("%s: %s is now %q, %v", how, name, text, err)
			}
			path := write("look: {command: [id], " + how + ": [k/" + name + "]}")
			if out, code := runIn(dir, testBinary(t), "config", "validate", "--config", path); code == 0 || !strings.Contains(out, "toolhost's own") {
				t.Errorf("%s %s: %d: %s", how, name, code, out)
			}
		}
	}
}

func TestSecretsOfADaemonAreInNoGrant(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"k/secret": "topsecret"})
	d := serve(t, "secrets: {weather: {file: "+dir+"/k/secret}}\ntools: {look: {command: [sh, -c, 'cat k/secret; echo x >> k/secret; ls k'], write: ["+dir+"], dir: "+dir+"}}\n")
	out, _ := runIn(dir, testBinary(t), "call", "--socket", d.socket, "look")
	if text, err := os.ReadFile(dir + "/k/secret"); strings.Contains(out, "topsecret") || !strings.Contains(out, "secret") || err != nil || string(text) != "topsecret" {
		t.Errorf("%q, %v: %s", text, err, out)
	}
}

// No tool is granted the standard state folder, even where a variable names another.
func TestTheStandardStateIsInNoGrant(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := tree(t, map[string]string{"home/.local/state/toolhost/token": "thetoken", "state/": ""})
	standard := dir + "/home/.local/state/toolhost"
	if os.Geteuid() == 0 {
		standard = state.Standard()[0]
	}
	cmd := exec.Command(testBinary(t), asToolhost, "exec", "--config", os.DevNull, "--write", filepath.Dir(standard), "--", "sh", "-c", "test -w "+standard+" && echo open; cat "+standard+"/token")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir+"/home", state.Variable+"="+dir+"/state")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "open") || strings.Contains(string(out), "thetoken") {
		t.Errorf("%s, %v", out, err)
	}
	if _, missing := os.Stat(standard); missing != nil && !strings.Contains(string(out), "make it first") {
		t.Errorf("%s could be made: %s, %v", standard, out, err)
	}
}

// A command without --config would take these.
func TestToolsCannotMakeTheStandardConfiguration(t *testing.T) {
	t.Parallel()
	needShell(t)
	const file = "/.config/toolhost/toolhost.yaml"
	for _, c := range []struct{ there, want string }{{".config/", "over"}, {".config/toolhost/", ""}, {file, ""}} {
		dir := tree(t, map[string]string{"home/" + c.there: "tools: {}\n", "state/": ""})
		script := "cd " + dir + "/home; mv .config c; mkdir -p .config/toolhost; " + planted + dir + "/home" + file + "; echo over"
		cmd := exec.Command(testBinary(t), asToolhost, "exec", "--config", os.DevNull, "--state", "none", "--write", dir+"/home", "--", "sh", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir+"/home", "XDG_CACHE_HOME="+dir)
		out, err := cmd.CombinedOutput()
		if c.want == "" && !strings.Contains(string(out), "over") || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v: %s", c.there, err, out)
		}
		if text, _ := os.ReadFile(dir + "/home" + file); strings.Contains(string(text), "own:") {
			t.Errorf("%s: the tool has made %s: %s", c.there, file, out)
		}
	}
}

// Who has none of toolhost's folders yet may grant the folder above them all.
func TestStandardFoldersAreMadeBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := tree(t, map[string]string{"home/p/toolhost.yaml": "state: ./state\ntools: {look: {command: [id], write: [.]}}\n"})
	home := dir + "/home"
	run := func(args ...string) (string, error) {
		cmd := exec.Command(testBinary(t), append([]string{asToolhost}, args...)...)
		cmd.Dir, cmd.Env = home+"/p", append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME="+dir, state.Variable+"=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"config", "validate"}, {"explain", "look"}, {"tools"}} {
		if out, err := run(append(args, "--config", "toolhost.yaml")...); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	if list, err := filepath.Glob(home + "/p/*"); err != nil || len(list) != 1 {
		t.Fatalf("commands that only look have made %v, %v", list, err)
	}
	if list, err := filepath.Glob(home + "/.*"); err != nil || len(list) != 0 {
		t.Fatalf("commands that only look have made %v, %v", list, err)
	}
	out, err := run("exec", "--config", os.DevNull, "--write", home, "--", "sh", "-c", "cd "+home+"; mkdir made; mv .config c; "+planted+".config/toolhost/toolhost.yaml; echo over")
	if err != nil || !strings.Contains(out, "over\n") {
		t.Errorf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(home + "/.config/toolhost/toolhost.yaml"); err == nil {
		t.Errorf("the tool has made a configuration: %s", text)
	}
	if _, err := os.Stat(home + "/made"); err != nil {
		t.Error(err)
	}
}
