package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/command"
	"github.com/toolhost/toolhost/internal/tools/config"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// command makes a tool of a command line.
func (c *Catalog) command(entry config.Tool) (Tool, error) {
	request, err := c.request(entry)
	if err != nil {
		return Tool{}, err
	}
	spec := entry.Command
	description := commandDescription(entry)
	tool, err := commandTool(spec, description)
	if err != nil {
		return Tool{}, fmt.Errorf("tool %s (%s): %w", entry.Name, entry.Source, err)
	}
	request.Command = &supervisor.Command{Argv: []string{spec.Program()}, Tool: tool}
	return c.offer(entry.Name, entry, request, description, &supervisor.Description{}), nil
}

// source is a command tool as it is written for the worker of a fleet.
type source struct {
	Description json.RawMessage `json:"description"`
	Spec        command.Spec    `json:"spec"`
}

// CommandTool makes the tool that another machine's catalogue has written.
func CommandTool(raw json.RawMessage) (*supervisor.CommandTool, error) {
	var s source
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("cannot read the command: %w", err)
	}
	if problems := s.Spec.Check(); len(problems) > 0 {
		return nil, fmt.Errorf("%s: %s", problems[0].Path, problems[0].Text)
	}
	description := &pluginv1.ToolDescription{}
	if err := protojson.Unmarshal(s.Description, description); err != nil {
		return nil, fmt.Errorf("cannot read the command's description: %w", err)
	}
	return commandTool(s.Spec, description)
}

func commandTool(spec command.Spec, description *pluginv1.ToolDescription) (*supervisor.CommandTool, error) {
	written, err := protojson.Marshal(description)
	if err != nil {
		return nil, fmt.Errorf("bug: cannot write the command's description: %w", err)
	}
	raw, err := json.Marshal(source{written, spec})
	if err != nil {
		return nil, fmt.Errorf("bug: cannot write the command: %w", err)
	}
	return supervisor.NewCommandTool(supervisor.CommandSpec{
		Description: description,
		Build: func(arguments json.RawMessage) ([]string, []byte, error) {
			built, err := spec.Build(arguments)
			return built.Argv, built.Stdin, err
		},
		Reader: func() supervisor.OutputReader { return &reader{parser: command.NewParser(spec.Format, maxJSONBytes)} },
		Exit: func(status int) (bool, string) {
			outcome := spec.Exit(status)
			return outcome.OK, outcome.Message
		},
		Shell: spec.Shell, Source: raw,
	})
}

func commandDescription(entry config.Tool) *pluginv1.ToolDescription {
	return &pluginv1.ToolDescription{
		Name: entry.Name, Title: entry.Title, Description: entry.Description,
		InputSchema: entry.Command.Schema(), TimeoutArgument: entry.Command.TimeoutArgument,
		Annotations: &pluginv1.Annotations{
			ReadOnly: claim(entry.ReadOnly), Idempotent: claim(entry.Idempotent), Destructive: entry.Destructive,
		},
	}
}

func claim(b bool) *bool {
	if !b {
		return nil
	}
	return &b
}

// maxJSONBytes bounds a command's one JSON value.
const maxJSONBytes = 1 << 20

// reader makes a supervisor's content of a command's.
type reader struct {
	parser    *command.Parser
	bad, long int64
	redacted  int64 // of bad
	unfit     int64 // lines
	why       error // JSON is kept as text
}

func (r *reader) Write(p []byte) []api.Content { return contents(r.parser.Write(p)) }

// Warning implements supervisor.OutputWarner.
func (r *reader) Warning() string {
	var parts []string
	for _, odd := range []struct {
		lines     int64
		what, why string
	}{
		{r.bad, "not JSON", r.secrets()},
		{r.long, fmt.Sprintf("longer than %d KiB, the most that is read as JSON", command.MaxLineBytes>>10), ""},
	} {
		switch {
		case odd.lines == 0:
		case odd.lines == 1:
			parts = append(parts, fmt.Sprintf("1 line of stdout was %s, and is kept as text%s", odd.what, odd.why))
		default:
			parts = append(parts, fmt.Sprintf("%d lines of stdout were %s, and are kept as text%s", odd.lines, odd.what, odd.why))
		}
	}
	if r.why != nil {
		parts = append([]string{supervisor.DroppedWarning(r.unfit, r.why)}, parts...)
	}
	return strings.Join(parts, "; ")
}

// secrets goes on from the bad lines where secrets were replaced in them.
func (r *reader) secrets() string {
	switch {
	case r.redacted == 0:
		return ""
	case r.bad == 1:
		return "; it has " + command.RedactedRemedy
	case r.redacted == 1:
		return "; 1 of them has " + command.RedactedRemedy
	}
	return fmt.Sprintf("; %d of them have %s", r.redacted, command.RedactedRemedy)
}

func (r *reader) End() ([]api.Content, json.RawMessage, error) {
	parsed := r.parser.Close()
	r.bad, r.redacted, r.long = parsed.BadLines, parsed.RedactedLines, parsed.LongLines
	r.unfit, r.why = parsed.UnfitLines, parsed.Unfit
	return contents(parsed.Content), parsed.Structured, parsed.Err
}

func contents(list []command.Content) []api.Content {
	out := make([]api.Content, len(list))
	for i, c := range list {
		out[i] = api.Content{Type: "text", Text: c.Text}
		if c.JSON != nil {
			out[i] = api.Content{Type: "json", JSON: c.JSON}
		}
	}
	return out
}
