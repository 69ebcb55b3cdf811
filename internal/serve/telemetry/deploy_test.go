package telemetry

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/toolhost/toolhost/turn"
)

const (
	rulesPath     = "../../../deploy/prometheus/toolhost.rules.yaml"
	dashboardPath = "../../../deploy/grafana/toolhost.json"
)

// series are the metrics that Prometheus has of us: by name the labels, and
// whether they only ever grow.
type series map[string]struct {
	labels  []string
	counter bool
}

// knownSeries are those of the registry, as they are when scraped.
func knownSeries(t *testing.T) series {
	t.Helper()
	known := series{}
	add := func(name string, counter bool, labels ...string) {
		entry := known[name]
		entry.counter, entry.labels = counter, append(slices.Clone(labels), "job", "instance")
		known[name] = entry
	}
	add("up", false)
	told := newTelemetry(t, Config{})
	told.Observe([]turn.Record{timedOut(), fine()})
	for _, d := range told.metrics.definitions {
		if d.kind != "histogram" {
			add(d.name, d.kind == "counter", d.labels...)
			continue
		}
		add(d.name+"_bucket", true, append(slices.Clone(d.labels), "le")...)
		add(d.name+"_sum", true, d.labels...)
		add(d.name+"_count", true, d.labels...)
	}
	families, err := told.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "process_") || strings.HasPrefix(f.GetName(), "go_") {
			add(f.GetName(), f.GetType().String() == "COUNTER")
		}
	}
	return known
}

// check parses an expression, and says what in it is not there.
func (known series) check(text string) (problems []string, result []string) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return []string{err.Error()}, nil
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			problems = append(problems, known.checkSelector(n, path)...)
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				if !slices.Contains(known.labelsOf(n.Expr), label) {
					problems = append(problems, "nothing has the label "+label+" in "+n.String())
				}
			}
		}
		return nil
	})
	return problems, known.labelsOf(expr)
}

func (known series) checkSelector(n *parser.VectorSelector, path []parser.Node) (problems []string) {
	entry, ok := known[n.Name]
	if !ok {
		return []string{"there is no metric " + n.Name}
	}
	for _, m := range n.LabelMatchers {
		if m.Name != "__name__" && !slices.Contains(entry.labels, m.Name) {
			problems = append(problems, n.Name+" has no label "+m.Name)
		}
	}
	grows := slices.ContainsFunc(path, func(p parser.Node) bool {
		call, ok := p.(*parser.Call)
		return ok && (call.Func.Name == "rate" || call.Func.Name == "increase")
	})
	if grows != entry.counter {
		problems = append(problems, n.Name+" is taken for what it is not: counters need rate or increase, gauges must not have it")
	}
	return problems
}

// labelsOf are those that the result of an expression has.
func (known series) labelsOf(e parser.Expr) []string {
	switch n := e.(type) {
	case *parser.AggregateExpr:
		if n.Op == parser.TOPK {
			return known.labelsOf(n.Expr)
		}
		return n.Grouping
	case *parser.VectorSelector:
		return known[n.Name].labels
	case *parser.MatrixSelector:
		return known.labelsOf(n.VectorSelector)
	case *parser.Call:
		return known.labelsOf(n.Args[len(n.Args)-1])
	case *parser.BinaryExpr:
		return known.labelsOf(n.LHS)
	case *parser.ParenExpr:
		return known.labelsOf(n.Expr)
	}
	return nil
}

var templated = regexp.MustCompile(`\$labels\.(\w+)`)

func TestAlerts(t *testing.T) {
	raw, err := os.ReadFile(rulesPath)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				For         string            `yaml:"for"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.UnmarshalWithOptions(raw, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	known, seen := knownSeries(t), map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || seen[r.Alert] || !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("alert %q is nameless, there twice, or of severity %q", r.Alert, r.Labels["severity"])
			}
			seen[r.Alert] = true
			problems, result := known.check(r.Expr)
			for _, p := range problems {
				t.Errorf("%s: %s", r.Alert, p)
			}
			for _, what := range []string{"summary", "description"} {
				text := r.Annotations[what]
				if text == "" {
					t.Errorf("%s has no %s", r.Alert, what)
				}
				for _, used := range templated.FindAllStringSubmatch(text, -1) {
					if !slices.Contains(result, used[1]) {
						t.Errorf("%s: its %s shows the label %s, which its expression has lost", r.Alert, what, used[1])
					}
				}
			}
			if !strings.Contains(r.Annotations["summary"], "$labels.instance") {
				t.Errorf("%s: its summary does not say where", r.Alert)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d alerts", len(seen))
	}
}

// panel is what of Grafana's model is checked.
type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ X, Y, W, H int }
	Targets []struct {
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

var (
	legend    = regexp.MustCompile(`\{\{(\w+)\}\}`)
	ofMetric  = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$instance", ".*", "$tool", ".*")
)

func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile(dashboardPath)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title      string
		Panels     []panel
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Annotations struct{ List []struct{ Expr string } }
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	known, shown, ids := knownSeries(t), 0, map[int]bool{}
	for _, p := range board.Panels {
		if p.Title == "" || ids[p.ID] || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d (%s) has no title, place or id of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			shown++
			problems, result := known.check(variables.Replace(target.Expr))
			for _, problem := range problems {
				t.Errorf("%s: %s", p.Title, problem)
			}
			for _, used := range legend.FindAllStringSubmatch(target.Legend, -1) {
				if !slices.Contains(result, used[1]) {
					t.Errorf("%s: its legend shows the label %s, which its expression has lost", p.Title, used[1])
				}
			}
		}
	}
	for _, v := range board.Templating.List {
		if v.Type != "query" {
			continue
		}
		found := ofMetric.FindStringSubmatch(v.Definition)
		if found == nil {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
			continue
		}
		name, _, _ := strings.Cut(found[1], "{")
		if entry, ok := known[name]; !ok || !slices.Contains(entry.labels, found[2]) {
			t.Errorf("variable %s: there is no label %s of %s", v.Name, found[2], name)
		}
	}
	for _, a := range board.Annotations.List {
		if problems, _ := known.check(variables.Replace(a.Expr)); problems != nil {
			t.Errorf("annotation: %q", problems)
		}
	}
	if shown < 30 {
		t.Errorf("only %d expressions", shown)
	}
}

// The check itself finds what is wrong.
func TestExpressionsAreChecked(t *testing.T) {
	known := knownSeries(t)
	for text, want := range map[string]string{
		"rate(toolhost_calls_total[5m]":                        "unclosed",
		"rate(toolhost_call_total[5m])":                        "no metric toolhost_call_total",
		`rate(toolhost_calls_total{turn="x"}[5m])`:             "no label turn",
		"sum by (profile) (rate(toolhost_calls_total[5m]))":    "the label profile",
		"sum by (a) (sum by (tool) (toolhost_calls_running))":  "the label a",
		"toolhost_calls_total > 5":                             "counters need rate",
		"rate(toolhost_calls_running[5m])":                     "counters need rate",
		"histogram_quantile(0.9, toolhost_call_queue_seconds)": "no metric toolhost_call_queue_seconds",
	} {
		if problems, _ := known.check(text); !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("%s has the problems %q, want %q", text, problems, want)
		}
	}
}
