package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// pageBlock is a fenced block of a page.
type pageBlock struct {
	line       int
	kind, text string
}

// pageBlocks are those of a page in Markdown, in their order.
func pageBlocks(page string) (list []pageBlock) {
	var open *pageBlock
	for i, line := range strings.Split(page, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &pageBlock{line: i + 1, kind: fence}
		case isFence:
			list, open = append(list, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return list
}

// TestHTTPAPIPage does what docs/http-api.md says, in one shell and in order,
// and holds what comes of each block against what the page shows of it.
func TestHTTPAPIPage(t *testing.T) {
	t.Parallel()
	wholeSystem(t)
	page, err := os.ReadFile("../../docs/http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	list := pageBlocks(string(page))
	if len(list) == 0 || list[0].kind != "yaml" {
		t.Fatal("docs/http-api.md does not begin with its toolhost.yaml")
	}
	d := serve(t, list[0].text)
	here := strings.NewReplacer("/run/toolhost/toolhost.sock", d.socket, "/var/lib/toolhost/token", d.token, "http://127.0.0.1:7070", d.url)
	for i, b := range list {
		list[i].text = here.Replace(b.text)
	}
	outputs := runBlocks(t, d.dir, list)
	shown := 0
	for i, b := range list {
		if b.kind != "json" && b.kind != "text" {
			continue
		}
		shown++
		if got := outputs[i-1]; !loosely(b.text).MatchString(got) {
			t.Errorf("line %d shows\n%s\nbut there was\n%s", b.line, b.text, got)
		}
	}
	if shown < 10 {
		t.Errorf("only %d outputs are shown", shown)
	}
	d.idle(t)
}

// endOfBlock is printed after each; no answer has it.
const endOfBlock = "\n=== end of block ===\n"

// runBlocks runs those of kind sh; the output of each is under its place.
func runBlocks(t *testing.T, dir string, list []pageBlock) map[int]string {
	t.Helper()
	var script strings.Builder
	var places []int
	for i, b := range list {
		if b.kind == "sh" {
			script.WriteString(b.text + "printf '" + strings.ReplaceAll(endOfBlock, "\n", `\n`) + "'\n")
			places = append(places, i)
		}
	}
	cmd := exec.CommandContext(wait.Context(t), "sh", "-u")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(script.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the page's commands failed: %v\n%s", err, out)
	}
	parts := strings.Split(string(out), endOfBlock)
	if len(parts) != len(places)+1 {
		t.Fatalf("%d of %d blocks have run:\n%s", len(parts)-1, len(places), out)
	}
	outputs := map[int]string{}
	for n, place := range places {
		outputs[place] = parts[n]
	}
	return outputs
}

// loosely is what an output must look like: … stands for anything, also over
// several lines, and line ends count for nothing.
func loosely(shown string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(strings.TrimSpace(shown))
	pattern = strings.ReplaceAll(pattern, "…", ".*")
	return regexp.MustCompile(`(?s)^\s*` + regexp.MustCompile(`\n+`).ReplaceAllString(pattern, `\s+`) + `\s*$`)
}

func TestLoosely(t *testing.T) {
	for _, test := range []struct {
		shown, got string
		want       bool
	}{
		{"{\"a\":\"…\"}\n{}", "{\"a\":\"b\"}\n{}\n", true},
		{"a…\nz", "a\nb\n\nz", true},
		{"a", "ab", false},
		{"a", "", false},
		{"[a]", "a", false},
		{"a\nb", "a b", true},
	} {
		if got := loosely(test.shown).MatchString(test.got); got != test.want {
			t.Errorf("%q, %q: %t", test.shown, test.got, got)
		}
	}
}
