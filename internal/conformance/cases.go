package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/toolhost/toolhost/plugin/schema"
)

// What a case can expect.
const (
	expectOK    = "ok"
	expectError = "error"
)

// Cases are what an author says of his tools: the arguments that a suite for
// everybody cannot know.
type Cases struct {
	Cases []Case `yaml:"cases"`
	// Sandbox is what the cases need to be granted. Calls with made-up arguments
	// are granted Read only.
	Sandbox Grants `yaml:"sandbox"`
}

// Grants are those of a sandbox.Policy.
type Grants struct {
	Read    []string `yaml:"read"`
	Write   []string `yaml:"write"`
	Network string   `yaml:"network"`
}

// Case is one call and what it should come to.
type Case struct {
	// Tool may be empty if the binary has only one. Name is for the report.
	Tool string `yaml:"tool"`
	Name string `yaml:"name"`
	// Args are the call's arguments; nil is {}.
	Args map[string]any `yaml:"args"`
	// Expect is ok, also if empty, or error.
	Expect string `yaml:"expect"`
	// Text must be part of the call's text, or of its error's message.
	Text string `yaml:"text"`
	// Timeout is a Go duration, 10s if empty. A case that is not long must end
	// in that time.
	Timeout string `yaml:"timeout"`
	// Long: with these arguments the call runs until it is told to end. Partial:
	// it shows something before that.
	Long    bool `yaml:"long"`
	Partial bool `yaml:"partial"`
}

const (
	caseTimeout    = 10 * time.Second
	maxCaseTimeout = 10 * time.Minute
	maxCases       = 256
)

// ParseCases reads a file of cases, YAML or JSON. Unknown keys are errors. An
// error is one line that names the place.
func ParseCases(name string, raw []byte) (*Cases, error) {
	var c Cases
	if err := yaml.UnmarshalWithOptions(raw, &c, yaml.Strict()); err != nil {
		text := strings.TrimSpace(yaml.FormatError(err, false, false))
		return nil, fmt.Errorf("cannot read the cases in %s: %s", name, firstLine(text))
	}
	for i := range c.Cases {
		if err := c.Cases[i].check(); err != nil {
			return nil, fmt.Errorf("case %d in %s: %w", i+1, name, err)
		}
	}
	if len(c.Cases) > maxCases {
		return nil, fmt.Errorf("%s has %d cases, at most %d are allowed", name, len(c.Cases), maxCases)
	}
	return &c, nil
}

// ParseCall reads a case from NAME={...}, or from {...} where the binary has
// only one tool.
func ParseCall(text string) (Case, error) {
	c := Case{Name: text}
	raw := text
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		name, arguments, ok := strings.Cut(text, "=")
		if !ok {
			return c, fmt.Errorf("call %q is neither NAME={...} nor {...}", text)
		}
		c.Tool, raw = name, arguments
	}
	digits := json.NewDecoder(strings.NewReader(raw))
	digits.UseNumber() // a float64 has not all of a large integer's
	err := digits.Decode(&c.Args)
	if _, more := digits.Token(); err == nil && more != io.EOF {
		err = errors.New("more follows the object")
	}
	if err != nil {
		return c, fmt.Errorf("call %q: its arguments are not a JSON object: %w", text, schema.DecodeError(err))
	}
	return c, c.check()
}

func (c *Case) check() error {
	switch {
	case c.Expect != "" && c.Expect != expectOK && c.Expect != expectError:
		return fmt.Errorf("expect %q is unknown: give ok or error", c.Expect)
	case c.Long && (c.Expect != "" || c.Text != ""):
		return errors.New("long and expect or text contradict one another: a long call is cut short")
	case c.Partial && !c.Long:
		return errors.New("partial is for a case with long: true")
	}
	if c.Timeout != "" {
		d, err := time.ParseDuration(c.Timeout)
		if err != nil || d <= 0 || d > maxCaseTimeout {
			return fmt.Errorf("timeout %q: give a duration up to %s, such as 30s", c.Timeout, maxCaseTimeout)
		}
	}
	return nil
}

// call is the case as the driver makes it.
func (c *Case) call(number int) (call, error) {
	args := c.Args
	if args == nil {
		args = map[string]any{}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return call{}, fmt.Errorf("case %d: its arguments cannot be JSON: %w", number, err)
	}
	timeout := caseTimeout
	if c.Timeout != "" {
		timeout, _ = time.ParseDuration(c.Timeout)
	}
	made := call{
		Name: c.Name, Arguments: string(raw), Expect: c.Expect, Text: c.Text, Long: c.Long, Partial: c.Partial,
		TimeoutMs: timeout.Milliseconds(),
	}
	if made.Name == "" {
		made.Name = excerpt(string(raw))
	}
	if made.Expect == "" && !c.Long {
		made.Expect = expectOK
	}
	return made, nil
}

// of picks the cases of one tool, the others' numbers kept.
func (c *Cases) of(tool string, only bool) (list []call, err error) {
	for i := range c.Cases {
		if one := &c.Cases[i]; one.Tool == tool || one.Tool == "" && only {
			made, err := one.call(i + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, made)
		}
	}
	return list, nil
}
