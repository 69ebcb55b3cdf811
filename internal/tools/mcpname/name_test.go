package mcpname

import (
	"strings"
	"testing"
)

func TestToolName(t *testing.T) {
	for _, test := range []struct{ server, tool, want string }{
		{"files", "read_file", "files__read_file"},
		{"files", strings.Repeat("x", 57), "files__" + strings.Repeat("x", 57)},
		{"files", strings.Repeat("x", 58), "files__" + strings.Repeat("x", 46) + "_0f6fde3ad5"},
		{"files", "read/file.v2", "files__read_file_v2_30dd68b591"},
		{"my files", "read", "my_files__read_185494807e"},
		{"", "session_status", "__session_status"},
		{"", "", "__"},
	} {
		if got := ToolName(test.server, test.tool); got != test.want {
			t.Errorf("ToolName(%q, %q) = %q, want %q", test.server, test.tool, got, test.want)
		}
	}
}

func TestSafe(t *testing.T) {
	for tool, want := range map[string]string{
		"read_file":              "read_file",
		"A-1":                    "A-1",
		strings.Repeat("x", 64):  strings.Repeat("x", 64),
		"admin.tools/list":       "admin_tools_list_148795b531",
		"":                       "_e3b0c44298",
		"x_0123456789":           "x_0123456789",
		"x\n":                    "x__73cb3858a6",
		strings.Repeat("y", 128): strings.Repeat("y", 53) + "_9c62286370",
	} {
		if got := Safe(tool); got != want {
			t.Errorf("Safe(%q) = %q, want %q", tool, got, want)
		}
	}
}

// Without the hash these would be alike.
func TestDifferentToolsHaveDifferentNames(t *testing.T) {
	seen := map[string]string{}
	for _, tool := range []string{"a.b", "a/b", "a_b", "a b", "a..b", "a\u00e4b", strings.Repeat("z", 65), strings.Repeat("z", 66)} {
		for _, server := range []string{"s", "s.", "s/"} {
			name := ToolName(server, tool)
			if other, taken := seen[name]; taken {
				t.Errorf("%s is both %s and %s", name, other, server+"+"+tool)
			}
			seen[name] = server + "+" + tool
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("files", "read_file")
	f.Add("", "session_status")
	f.Add("session", "status")
	f.Add("session_status", "")
	f.Add("é", strings.Repeat("读", 70))
	f.Fuzz(func(t *testing.T, server, tool string) {
		for _, name := range []string{ToolName(server, tool), Safe(tool)} {
			if !legal().MatchString(name) {
				t.Errorf("%q of %q and %q", name, server, tool)
			}
		}
		if ToolName(server, tool) == "session_status" {
			t.Errorf("%q and %q give the reserved name", server, tool)
		}
		if safe := Safe(tool); safe != tool && !Hashed(safe) {
			t.Errorf("%q became %q, which does not look replaced", tool, safe)
		}
	})
}
