package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

const (
	docPath    = "../../../docs/config.md"
	schemaPath = "../../../docs/toolhost.schema.json"
)

// keyTable is the reference in the docs, from the table of keys.
func keyTable() string {
	var out strings.Builder
	section := func(title string, keys []*key) {
		fmt.Fprintf(&out, "\n### %s\n\n| key | value | default | what it does |\n|---|---|---|---|\n", title)
		tableRows(&out, "", keys, false)
	}
	section("The file", rootKeys)
	section("Limits: `limits`, and in each class and tool", limitKeys)
	tableRows(&out, "limits.", []*key{ceilingKey}, false)
	section("A tool: `tools.TOOL`, beside the keys of a class", toolKeys[:len(toolKeys)-len(commonKeys)])
	section("A class or tool: `classes.CLASS`, `tools.TOOL`", withoutLimits(commonKeys))
	section("A single tool of an MCP server: `tools.TOOL.tools.NAME`, beside the keys of a class", serverToolKeys[:1])
	return out.String()
}

func withoutLimits(keys []*key) (list []*key) {
	for _, k := range keys {
		if find(limitKeys, k.name) != k {
			list = append(list, k)
		}
	}
	return list
}

// tableRows leaves out what has a section of its own.
func tableRows(out *strings.Builder, prefix string, keys []*key, restart bool) {
	for _, k := range keys {
		name := prefix + k.name
		cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
		restart := restart || k.restart
		if k.kind != nil || k.names != nil || k.unset || prefix == "" && definition(k) != "" {
			fmt.Fprintf(out, "| %s | %s | %s | %s |\n", keyCell(name, k), cell(k.valueCell()), cell(k.defaultCell()), cell(k.docCell(restart)))
		}
		if k.names != nil {
			name += "." + k.names.word
		}
		if definition(k) == "" && !k.unset || k.short != "" {
			tableRows(out, name+".", k.keys, restart)
		}
	}
}

func keyCell(name string, k *key) string {
	cell := "`" + name + "`"
	if k.systemd != "" {
		cell += ", `" + k.systemd + "`"
	}
	if k.variable != "" {
		cell += ", `$" + k.variable + "`"
	}
	return cell
}

func (k *key) valueCell() string {
	switch {
	case k.names != nil && k.names.known != nil:
		return "by " + k.names.word + ": " + strings.Join(k.names.known, ", ")
	case k.names != nil && k.kind != nil:
		return "by " + k.names.word + ": " + k.kind.name
	case k.names != nil:
		return "by " + k.names.word
	case k.kind == nil:
		return "mapping"
	}
	return k.kind.name
}

func (k *key) defaultCell() string { return strings.TrimSuffix(strings.TrimPrefix(k.std, "("), ")") }

func (k *key) docCell(restart bool) string {
	if restart {
		return k.doc + " (a change needs a restart)"
	}
	return k.doc
}

// Each key that has a value is in the reference, under its path or below a section's.
func TestDocsHaveAllKeys(t *testing.T) {
	table := keyTable()
	walk(rootKeys, "", func(path string, k *key) {
		if k.kind == nil {
			return
		}
		for _, section := range []string{"", "limits.", "classes.CLASS.", "tools.TOOL.tools.NAME.", "tools.TOOL."} {
			if rest, ok := strings.CutPrefix(path, section); ok && strings.Contains(table, "\n| `"+rest+"`") {
				return
			}
		}
		if !strings.HasPrefix(path, "totals.") { // which are named by the first and the last
			t.Errorf("%s is missing", path)
		}
	})
	for _, path := range []string{"access.ACCESS.limits.memory", "limits.network"} {
		if !strings.Contains(table, "\n| `"+path+"`") {
			t.Errorf("%s is missing", path)
		}
	}
}

// Docs are written from the table of keys.
func TestDocsAreFresh(t *testing.T) {
	raw, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(raw), "-update` -->\n")
	_, after, found := strings.Cut(rest, "<!-- end of keys -->")
	if !found {
		t.Fatalf("%s has no place for the keys", docPath)
	}
	want := before + "-update` -->\n" + keyTable() + "\n<!-- end of keys -->" + after
	fresh(t, docPath, []byte(want))
	fresh(t, schemaPath, Schema())
}

func fresh(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): run go test ./internal/tools/config -run Docs -update", path, err)
	}
}

// example is the file in the docs, on a machine that has what it names.
func example(t *testing.T) (text string, files map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = strings.Cut(string(raw), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	files = maps.Clone(world)
	files["/etc/th/toolhost.yaml"], files["/etc/th/secrets/weather"] = text, "sunny"
	return text, files
}

func TestDocsExampleLoads(t *testing.T) {
	_, files := example(t)
	l, err := loadFiles(t, files)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Tools) != 5 || l.Tools[4].Of("read_file").Timeouts[0].Detail == "" {
		t.Errorf("the example has tools %+v", l.Tools)
	}
	if got := l.Tools[1].Limits.MemoryBytes; got != 4<<30 {
		t.Errorf("python has memory %d", got)
	}
}

// The schema takes what Load takes, and refuses unknown keys at every depth.
func TestSchema(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(value)
	}
	text, _ := example(t)
	good := []string{text}
	for _, c := range hostCases {
		good = append(good, c.text)
	}
	for path, c := range toolCases {
		good = append(good, "tools: {t: {plugin: x, "+member(path, c.value)+"}}")
	}
	for _, text := range good {
		if err := validate(text); err != nil {
			t.Errorf("the schema refuses what is right: %v\n%s", err, text)
		}
	}
	for _, text := range []string{
		"memory: 1", "limits: {memroy: 1}", "limits: {memory: lots}", "limits: {cpu: 100}", "timeouts: {tool_cal: {}}", "kill: {grace: 2}",
		"tools: {a b: {plugin: x}}", "tools: {t: {}}", "tools: {t: {plugin: x, mcp: [y]}}", "tools: {t: {plugin: x, mode: maybe}}",
		"tools: {t: {mcp: [x], tools: {a: {zz: 1}}}}", "tools: {t: {command: [x], params: {p: {zz: 1}}}}", "classes: {c: {plugin: x}}", "access: {a: {limits: {tmp: 1MiB}}}",
		"tools: {t: {plugin: x, read: ~/src}}", "secrets: {s: {fil: x}}", "tools: {t: {mcp: []}}", "include: x",
	} {
		if validate(text) == nil {
			t.Errorf("the schema takes %s", text)
		}
	}
}
