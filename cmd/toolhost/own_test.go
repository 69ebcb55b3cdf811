package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A tool that may read the folder in which the daemon's files lie sees none of them
// but the configuration.
func TestDaemonsFilesBelowAGrant(t *testing.T) {
	t.Parallel()
	d := serve(t, `tools: {look: {command: [sh, -c, "ls $1/state $1/store; cat $1/state/token $1/state/journal.db $1/api.sock $1/api.sock.lock; cat $1/toolhost.yaml", sh, "{dir}"], read: [.]}}`)
	token, err := os.ReadFile(d.token)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testBinary(t), asToolhost, "call", "--socket", d.socket, "--json", "look", "dir="+d.dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if bytes.Contains(out, bytes.TrimSpace(token)) || bytes.Contains(out, []byte("SQLite format")) {
		t.Errorf("the tool saw the daemon's files: %s", out)
	}
	if !bytes.Contains(out, []byte("dirs: {store:")) {
		t.Errorf("the tool did not see the configuration: %s", out)
	}
}

// ownFolder has a state folder with a token, and a configuration that names it.
func ownFolder(t *testing.T, tools string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.MkdirAll(dir+"/w/state/data", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("w/state", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"w/state/token": "thetoken", "w/toolhost.yaml": "state: state\ntools: {" + tools + "}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func runIn(dir string, binary string, args ...string) (output string, code int) {
	cmd := exec.Command(binary, append([]string{asToolhost}, args...)...)
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// What is toolhost's own is refused where it is granted, on every surface.
func TestGrantsOfOwnFilesAreRefused(t *testing.T) {
	t.Parallel()
	for _, grant := range []string{"read: [state]", "write: [state]", "read: [state/token]", "write: [../link/data]", "read: [/run/secrets, ../link]", "write: [toolhost.yaml]"} {
		dir := ownFolder(t, "look: {command: [id], "+grant+"}")
		for _, args := range [][]string{
			{"config", "validate", "--config", "w/toolhost.yaml"},
			{"run", "--config", "w/toolhost.yaml", "look"},
			{"serve", "--config", "w/toolhost.yaml", "--socket", dir + "/s"},
			{"mcp", "--config", "w/toolhost.yaml"},
			{"tools", "--config", "w/toolhost.yaml"},
		} {
			if out, code := runIn(dir, testBinary(t), args...); code == 0 || !strings.Contains(out, "toolhost's own") && !strings.Contains(out, "/run/secrets") {
				t.Errorf("%s with %s: %d: %s", args, grant, code, out)
			}
		}
	}
	dir := ownFolder(t, "")
	for _, grant := range [][]string{{"--read", "w/state"}, {"--read", "link/token"}, {"--write", "w/state/data"}} {
		args := append([]string{"exec", "--config", "w/toolhost.yaml"}, append(grant, "--", "true")...)
		if out, code := runIn(dir, testBinary(t), args...); code != 2 || !strings.Contains(out, "toolhost's own") {
			t.Errorf("%s: %d: %s", args, code, out)
		}
	}
}

// Below a granted folder the state is hidden, and the configuration read-only.
func TestOwnFilesBelowAGrantOfTheCommandLine(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := ownFolder(t, "")
	script := "cat w/state/token w/toolhost.yaml; echo x >> w/state/token; echo x >> w/toolhost.yaml; git -C w status 2>&1; ls w"
	for _, grant := range []string{"--read", "--write"} {
		out, code := runIn(dir, testBinary(t), "exec", "--quiet", "--config", "w/toolhost.yaml", grant, ".", "--", "sh", "-c", script)
		if code != 0 || strings.Contains(out, "thetoken") || !strings.Contains(out, "state: state") {
			t.Errorf("%s: %d: %s", grant, code, out)
		}
	}
	for name, want := range map[string]string{"w/state/token": "thetoken", "w/toolhost.yaml": "state: state\ntools: {}\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s is now %q, %v", name, text, err)
		}
	}
}

// What no call could be granted is found before there is one.
func TestValidateFindsWhatCannotBeGranted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.MkdirAll(filepath.Join(dir, "around", "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	for grant, want := range map[string]string{
		"write: [fifo]": "neither a file nor a folder", "read: [socket]": "neither a file nor a folder", "write: [around]": "toolhost's own, or to a folder around it",
	} {
		file := "dirs: {store: around/store}\ntools: {look: {command: [id], " + grant + "}}\n"
		if err := os.WriteFile(filepath.Join(dir, "toolhost.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code := runIn(dir, testBinary(t), "config", "validate", "--config", "toolhost.yaml"); code != 2 || !strings.Contains(out, want) {
			t.Errorf("%s: %d: %s", grant, code, out)
		}
	}
}
