package telemetry

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

const docPath = "../../../docs/telemetry.md"

// metricTable is the reference in the docs.
func metricTable(t *testing.T) string {
	told := newTelemetry(t, Config{})
	var out strings.Builder
	out.WriteString("\n| metric | type | labels | what it tells |\n|---|---|---|---|\n")
	for _, d := range told.metrics.definitions {
		labels := make([]string, len(d.labels))
		for i, label := range d.labels {
			labels[i] = "`" + label + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", d.name, d.kind, strings.Join(labels, ", "), d.help)
	}
	return out.String()
}

// The reference is written from the registry.
func TestDocsAreFresh(t *testing.T) {
	raw, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-update` -->\n", "\n<!-- end of metrics -->"
	before, rest, _ := strings.Cut(string(raw), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the metrics", docPath)
	}
	want := before + begin + metricTable(t) + end + after
	if *update {
		if err := os.WriteFile(docPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Errorf("%s is stale: run go test ./internal/serve/telemetry -run Docs -update", docPath)
	}
}

// Every label is explained.
func TestDocsExplainLabels(t *testing.T) {
	raw, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	_, labels, _ := strings.Cut(string(raw), "## Labels")
	for _, d := range newTelemetry(t, Config{}).metrics.definitions {
		for _, label := range d.labels {
			if !strings.Contains(labels, "\n| `"+label+"` |") {
				t.Errorf("%s does not explain the label %s of %s", docPath, label, d.name)
			}
		}
	}
}

// Every attribute of a call's spans is in the docs.
func TestDocsNameAttributes(t *testing.T) {
	raw, err := os.ReadFile(docPath)
	if err != nil {
		t.Fatal(err)
	}
	r := timedOut().Result
	code := 1
	r.Exit.Code, r.Where, r.Timing.HumanWaitMs = &code, &api.Where{Worker: "w"}, 5
	span := newTraced(&ended{result: r})
	if len(span.kill) == 0 || len(span.attributes) < 20 {
		t.Fatalf("attributes are missing: %v, %v", span.attributes, span.kill)
	}
	for _, a := range append(span.attributes, span.kill...) {
		if !strings.Contains(string(raw), "`"+string(a.Key)+"`") {
			t.Errorf("%s does not name the attribute %s", docPath, a.Key)
		}
	}
}
