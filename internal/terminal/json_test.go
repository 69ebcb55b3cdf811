package terminal

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/pty"
)

func TestEscapedJSONMeansTheSame(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"{\"a\": [1, \"ä\\n\"]}\n":       "{\"a\": [1, \"ä\\n\"]}\n",
		"\"\u009b2J\u007f\"":             `"\u009b2J\u007f"`,
		"{\"\u202egnp.exe\":\"\u2066\"}": `{"\u202egnp.exe":"\u2066"}`,
		"\"a\u200b\U000e0041\"":          `"a\u200b\udb40\udc41"`,
		"\"\x9b2J\"":                     `"\ufffd2J"`,
		`"\\` + "\u0085" + `"`:           `"\\\u0085"`,
	} {
		got := escapeJSON([]byte(raw))
		if string(got) != want {
			t.Errorf("%q becomes %q, want %q", raw, got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(raw), &before) != nil || json.Unmarshal(got, &after) != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q means %q, then %q", raw, before, after)
		}
	}
}

func TestJSONIsEscapedOnTerminalsOnly(t *testing.T) {
	t.Parallel()
	const raw = "\"\u009b2J\"\n"
	var b bytes.Buffer
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if JSON(&b) != &b || JSON(file) != file {
		t.Error("escaped where nobody looks")
	}
	p := pty.New(t)
	if n, err := JSON(p.Slave()).Write([]byte(raw)); n != len(raw) || err != nil {
		t.Error(n, err)
	}
	p.Expect(t, `"\u009b2J"`, 1)
	if strings.Contains(p.Screen(), "\u009b") {
		t.Errorf("the terminal has %q", p.Screen())
	}
}
