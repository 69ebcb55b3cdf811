package conformance

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/supervisor"
)

// exampleCases let each example be tried with as much as it can. /usr is there
// in every sandbox, and takes a while to read.
var exampleCases = map[string]string{
	"search": `
cases:
  - {args: {pattern: needle}}
  - {args: {pattern: "("}, expect: error, text: regular expression}
  - {args: {pattern: e, path: /usr}, long: true, partial: true}
`,
	"checksum": `
cases:
  - {args: {}}
  - {args: {path: /nonexistent}, expect: error}
  - {args: {path: /usr}, long: true, partial: true}
`,
	"wordcount": `
cases:
  - {args: {text: to be or not to be}}
  - {args: {}, expect: error, text: nothing to count}
  - {args: {paths: [/usr]}, long: true, partial: true}
`,
	// Its one call is deaf, which is the point of it.
	"stubborn": `
cases:
  - {args: {children: 3}, long: true, partial: true}
`,
}

// TestExamples: every example passes, but for stubborn, which does not end when
// it is told to and breaks no other rule.
func TestExamples(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("builds tools with go, which the VM does not have")
	}
	bin := t.TempDir()
	if err := binaries.Into(bin, slices.Collect(maps.Keys(exampleCases))...); err != nil {
		t.Fatal(err)
	}
	host := newHost(t)
	for name, text := range exampleCases {
		t.Run(name, func(t *testing.T) {
			grace := 20 * time.Second
			if name == "stubborn" {
				grace = time.Second
			}
			cases, err := ParseCases("test", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), host, Options{
				Tool:   supervisor.Tool{Path: filepath.Join(bin, name)},
				Driver: driver, Cases: cases, Grace: grace, Patience: time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{}
			if name == "stubborn" {
				want = []string{ruleCancel.id}
			}
			if !slices.Equal(r.Failed(), want) || r.Count(Warn) > 0 {
				t.Errorf("failed %q, want %q; %d warnings", r.Failed(), want, r.Count(Warn))
			}
			show(t, r)
		})
	}
}
