package mcpsuite

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/processes"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// deadline is the timeout of slow tools; those of the browsers start one first.
const deadline = "6s"

// TestServers uses twelve servers that people have, each as npm has it, through the
// daemon, and has each killed at a deadline.
func TestServers(t *testing.T) {
	stage.Of(t, "servers")
	modules := filepath.Join(npm.Folder(t, "testdata/servers"), "node_modules")
	folder := furnished(t)
	mark := "SERVERS_TEST=" + rand.Text()
	config := &strings.Builder{}
	fmt.Fprintln(config, "tools:")
	for _, s := range servers {
		config.WriteString(s.entry(modules, folder, mark))
	}
	client := connect(t, serve(t, config.String()))
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			lists(t, client, s)
			for _, one := range s.use {
				if text, err := one.send(t, client, s.name, folder); err != nil || !strings.Contains(text, one.want) {
					t.Errorf("%v: %v, answered %.2000s", one, err, text)
				}
			}
			killedAtDeadline(t, client, s, folder, mark)
		})
	}
}

// entry is the server in a configuration. Everything that it starts has the mark.
func (s popular) entry(modules, folder, mark string) string {
	argv := strings.TrimSuffix("node, "+filepath.Join(modules, s.program)+", "+s.arguments, ", ")
	name, value, _ := strings.Cut(mark, "=")
	lines := []string{
		s.name + ":", "  mcp: [" + strings.ReplaceAll(argv, "FOLDER", folder) + "]", "  read: [" + filepath.Dir(modules) + s.reads + "]", "  write: [" + folder + "]",
		"  mode: allow", "  pin: false", "  startTimeout: 50s", "  timeout: 50s", "  env: {" + name + ": " + value + s.environment + "}",
		"  tools: {" + s.slow.tool + ": {timeout: " + deadline + "}}",
	}
	for key, value := range s.more {
		lines = append(lines, "  "+key+": "+value)
	}
	return "  " + strings.Join(lines, "\n  ") + "\n"
}

// furnished is the folder that stands for FOLDER.
func furnished(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "servers-") // which others can reach
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	script := `set -e; cd "$1"; mkfifo -m 666 pipe; mkdir repository; cd repository; git init -q; echo a >a; git add a
git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qm "the first commit"
printf '#!/bin/sh\nexec sleep 1000\n' >.git/slow; chmod +x .git/slow; git config core.fsmonitor "$PWD/.git/slow"; chmod -R a+rwX "$1"`
	if out, err := exec.Command("sh", "-c", script, "sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	book(t, filepath.Join(dir, "book.xlsx"))
	return dir
}

// book writes an empty workbook.
func book(t *testing.T, path string) {
	t.Helper()
	const head, types = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`, "application/vnd.openxmlformats-officedocument.spreadsheetml."
	const main, office = "http://schemas.openxmlformats.org/spreadsheetml/2006/main", "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	relation := func(kind, target string) string {
		return head + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="` + office + "/" + kind + `" Target="` + target + `"/></Relationships>`
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Chmod(0o666); err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(file)
	for name, text := range map[string]string{
		"[Content_Types].xml": head + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Override PartName="/xl/workbook.xml" ContentType="` + types + `sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="` + types + `worksheet+xml"/></Types>`,
		"_rels/.rels":                relation("officeDocument", "xl/workbook.xml"),
		"xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/sheet1.xml"),
		"xl/workbook.xml":            head + `<workbook xmlns="` + main + `" xmlns:r="` + office + `"><sheets><sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>`,
		"xl/worksheets/sheet1.xml":   head + `<worksheet xmlns="` + main + `"><dimension ref="A1"/><sheetData/></worksheet>`,
	} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, address string) *mcpsdk.ClientSession {
	t.Helper()
	client := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "servers"}, nil)
	session, err := client.Connect(t.Context(), &mcpsdk.StreamableClientTransport{Endpoint: address}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// lists checks that what is used is listed, and enough beside it.
func lists(t *testing.T, client *mcpsdk.ClientSession, s popular) {
	t.Helper()
	names := map[string]int{}
	for tool, err := range client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		entry, _, _ := strings.Cut(tool.Name, "__")
		names[entry]++
		names["tool "+tool.Name]++
	}
	for prompt, err := range client.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names["prompt "+prompt.Name]++
	}
	if names[s.name] < s.tools {
		t.Errorf("%d tools are listed, want at least %d", names[s.name], s.tools)
	}
	for _, one := range s.use {
		if one.prompt != "" && names["prompt "+s.name+"__"+one.prompt] == 0 {
			t.Errorf("the prompt %s is not listed among %v", one.prompt, slices.Sorted(maps.Keys(names)))
		}
	}
}

// send makes the request and gives all text of the answer.
func (u used) send(t *testing.T, client *mcpsdk.ClientSession, server, folder string) (string, error) {
	t.Helper()
	raw, err := json.Marshal(u.arguments)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.ReplaceAll(raw, []byte("FOLDER"), []byte(folder))
	var answer any
	switch {
	case u.prompt != "":
		var arguments map[string]string
		if err := json.Unmarshal(raw, &arguments); err != nil {
			t.Fatal(err)
		}
		answer, err = client.GetPrompt(t.Context(), &mcpsdk.GetPromptParams{Name: server + "__" + u.prompt, Arguments: arguments})
	case u.resource != "":
		answer, err = client.ReadResource(t.Context(), &mcpsdk.ReadResourceParams{URI: u.resource})
	default:
		answer, err = client.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: server + "__" + u.tool, Arguments: json.RawMessage(raw)})
	}
	text := &strings.Builder{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		t.Fatal(err)
	}
	return text.String(), err
}

// killedAtDeadline calls what does not end, and looks for what is left when the answer
// comes: processes, their cgroups and their mounts.
func killedAtDeadline(t *testing.T, client *mcpsdk.ClientSession, s popular, folder, mark string) {
	t.Helper()
	found := make(chan traces, 1)
	if s.hangs {
		found <- stop(t, mark, s.program)
	} else {
		go func() { found <- seen(t, mark, s.program) }()
	}
	text, err := s.slow.send(t, client, s.name, folder)
	left := <-found
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[TIMEOUT]", `"status":"timeout"`, `"survivors":0`, s.slow.want} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in what a call that timed out is answered with: %.3000s", want, text)
		}
	}
	left.check(t)
}

// traces are what a server has of the machine: processes, cgroups, mount namespaces.
type traces struct{ pids, cgroups, mounts []string }

// seen waits for the server's processes and looks at what they have.
func seen(t *testing.T, mark, program string) traces {
	var pids []int
	wait.Until(t, "the server to run", func() bool {
		pids = of(mark, program)
		return len(pids) > 0
	})
	return lookAt(pids)
}

// stop has the kept server hang.
func stop(t *testing.T, mark, program string) traces {
	t.Helper()
	found := seen(t, mark, program)
	for _, pid := range of(mark, program) {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func of(mark, program string) (both []int) {
	marked := processes.WithEnvironment(mark)
	for _, pid := range processes.WithArguments("node\x00", program) {
		if slices.Contains(marked, pid) {
			both = append(both, pid)
		}
	}
	return both
}

func lookAt(pids []int) (all traces) {
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid)
		all.pids = append(all.pids, dir)
		mounts, _ := os.Readlink(dir + "/ns/mnt")
		all.mounts = append(all.mounts, mounts)
		text, _ := os.ReadFile(dir + "/cgroup")
		for line := range strings.Lines(string(text)) {
			parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(parts) == 3 && strings.Contains(parts[2], "toolhost") && !slices.Contains(all.cgroups, parts[2]) {
				all.cgroups = append(all.cgroups, parts[2])
			}
		}
	}
	return all
}

func (l traces) check(t *testing.T) {
	t.Helper()
	if len(l.pids) == 0 || len(l.cgroups) == 0 || len(l.mounts) == 0 {
		t.Fatalf("the server was not seen: %v", l)
	}
	for _, dir := range l.pids {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("the process %s is left", dir)
		}
	}
	hierarchies, _ := filepath.Glob("/sys/fs/cgroup/*")
	for _, group := range l.cgroups {
		for _, root := range append(hierarchies, "/sys/fs/cgroup") {
			wait.Until(t, "the end of the cgroup "+root+group, func() bool { // an empty one is removed behind the answer
				_, err := os.Stat(root + group)
				return err != nil
			})
		}
	}
	namespaces, _ := filepath.Glob("/proc/[0-9]*/ns/mnt")
	for _, path := range namespaces {
		if one, err := os.Readlink(path); err == nil && slices.Contains(l.mounts, one) {
			t.Errorf("the mounts of the server are left: %s has them", path)
		}
	}
}
