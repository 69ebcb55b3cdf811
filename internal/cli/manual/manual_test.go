package manual

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func example() *cobra.Command {
	nothing := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Do things", Long: "It does things.\n\n  as they are\n\n.PP is not a request, and 'nor' is this."}
	do := &cobra.Command{Use: "do [flags] THING", Short: "Do one thing", Run: nothing, Example: `  tool do --path C:\x thing`}
	do.Flags().StringP("path", "p", "", "where, in `DIR`")
	secret := &cobra.Command{Use: "secret", Short: "Hidden", Hidden: true, Run: nothing}
	group := &cobra.Command{Use: "group", Short: "Several"}
	group.AddCommand(&cobra.Command{Use: "one", Short: "The first", Run: nothing})
	root.AddCommand(do, secret, group)
	return root
}

func options() Options {
	return Options{Version: "1.2", Date: time.Unix(0, 0), Manual: "manual", Files: [][2]string{{"/etc/tool", "What it reads."}}}
}

func pages(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := Commands(dir, example(), options()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCommands(t *testing.T) {
	dir := pages(t)
	for name, wanted := range map[string][]string{
		"tool.1": {
			`.TH "TOOL" "1" "Jan 1970" "toolhost 1.2" "manual"`, `tool - Do things`, "as they are", `\&.PP is not a request`,
			`\fBtool-do(1)\fP`, ".SH COMMANDS\n", "\\fBdo\\fP\nDo one thing.", `\fB/etc/tool\fP`,
		},
		"tool-do.1":        {`\fBtool do [flags] THING\fP`, `\fB-p\fP, \fB--path\fP="DIR"`, `where, in \fBDIR\fR`, `C:\\x`},
		"tool-group-one.1": {`tool-group-one - The first`},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		for _, part := range wanted {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q:\n%s", name, part, text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tool-secret.1")); err == nil {
		t.Error("a hidden command has a page")
	}
}

const document = "# Title\n\nWords with `code`, **weight** and a [link](x.md).\n\n## Part\n\n```yaml\n.key: 'value'\n```\n\n" +
	"- an item\n\n| key | value | default | what it does |\n|---|---|---|---|\n| `a` | x or `\\|` | 1 | does it |\n"

func TestMarkdown(t *testing.T) {
	dir := t.TempDir()
	if err := Markdown(dir, "file", "5", "what it is", document, options()); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "file.5"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`Words with \fBcode\fR, \fBweight\fP and a link.`, `.SH Part`, `\&.key: 'value'`, "an item",
		`does it. Value: x or \fB|\fR\&. Default: 1.`,
	} {
		if !strings.Contains(string(page), part) {
			t.Errorf("no %q in\n%s", part, page)
		}
	}
}

// TestRoff has the formatter itself look for mistakes.
func TestRoff(t *testing.T) {
	man, err := exec.LookPath("man")
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatal(err)
	case err != nil:
		t.Skip("there is no man(1): install man-db and groff-base")
	}
	dir := pages(t)
	if err := Markdown(dir, "file", "5", "what it is", document, options()); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		cmd := exec.Command(man, "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", file)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80")
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil || said.Len() > 0 {
			t.Errorf("%s: %v\n%s", filepath.Base(file), err, said.String())
		}
	}
}
