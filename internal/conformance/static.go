package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/internal/plugin/host"
	"github.com/toolhost/toolhost/network"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/schema"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// reservedName is a tool that hosts have themselves.
const reservedName = "session_status"

// checkNames judges all tools together.
func checkNames(tools []*pluginv1.ToolDescription) Finding {
	seen := map[string]bool{}
	for _, tool := range tools {
		name := tool.GetName()
		switch {
		case !nameForm.MatchString(name):
			return failed("name tools with 1 to 64 of A-Z, a-z, 0-9, _ and -, the form that every model API takes", "the name %q", name)
		case name == reservedName:
			return failed("give the tool another name", "the name %q belongs to hosts", name)
		case seen[name]:
			return failed("give each tool in a binary a name of its own", "two tools are named %q", name)
		}
		seen[name] = true
	}
	for _, tool := range tools {
		if strings.TrimSpace(tool.GetDescription()) == "" {
			return warned("say in the description what the tool does and when to use it: it is all that a model goes by", "%s has no description", tool.GetName())
		}
	}
	return passed("%s", count(len(tools), "tool", "tools"))
}

// checkSchemas judges one tool.
func checkSchemas(tool *pluginv1.ToolDescription) Finding {
	input, output := tool.GetInputSchema(), tool.GetOutputSchema()
	if problem := schemaProblem(input); problem != "" {
		return failed("describe the arguments by a JSON Schema with type: object", "its input schema: %s", problem)
	}
	if len(output) == 0 {
		return passed("input; no output schema")
	}
	if problem := schemaProblem(output); problem != "" {
		const fix = "describe the structured result by a JSON Schema with type: object"
		if isSchema(output) {
			return warned(fix+": MCP has no other", "its output schema: %s", problem)
		}
		return failed(fix, "its output schema: %s", problem)
	}
	return passed("input and output")
}

func schemaProblem(raw []byte) string {
	if len(raw) == 0 {
		return "it is missing"
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return fmt.Sprintf("no JSON object: %v", err)
	}
	if _, err := schema.Parse(raw); err != nil {
		return err.Error()
	}
	if object["type"] != "object" {
		return fmt.Sprintf("its type is %v, not object", object["type"])
	}
	return ""
}

func isSchema(raw []byte) bool {
	_, err := schema.Parse(raw)
	return err == nil
}

// checkClaims judges what one tool says of itself beside its schemas.
func checkClaims(tool *pluginv1.ToolDescription) Finding {
	a, hints, wish := tool.GetAnnotations(), tool.GetTimeouts(), tool.GetWish()
	switch {
	case a.GetReadOnly() && a.GetDestructive():
		return failed("claim one of them", "it claims to be both read-only and destructive")
	case a.GetReadOnly() && len(wish.GetWrite()) > 0:
		return failed("do not wish to write, or do not claim to be read-only: a host grants a read-only tool no write", "it claims to be read-only and wishes to write %s", strings.Join(wish.GetWrite(), ", "))
	case hints.GetTimeoutMs() < 0 || hints.GetSoftBudgetMs() < 0 || hints.GetGapMs() < 0:
		return failed("leave a hint out (0) or make it positive", "a hint of its timeouts is negative")
	case hints.GetTimeoutMs() > 0 && hints.GetSoftBudgetMs() > hints.GetTimeoutMs():
		return failed("let the soft budget be the smaller", "its soft budget of %d ms is over its timeout of %d ms", hints.GetSoftBudgetMs(), hints.GetTimeoutMs())
	case wish.GetMemoryBytes() < 0 || wish.GetPids() < 0:
		return failed("leave a limit out (0) or make it positive", "a limit that it wishes for is negative")
	}
	if problem := timeoutArgument(tool); problem != "" {
		return failed("declare the argument as an integer, in milliseconds, or name none", "%s", problem)
	}
	for _, path := range append(append([]string{}, wish.GetRead()...), wish.GetWrite()...) {
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~") {
			return warned("wish for absolute paths, or such as begin with ~", "it wishes for %q, which depends on where the host was started", path)
		}
	}
	for _, to := range wish.GetReach() {
		if _, err := network.Parse(to); err != nil {
			return failed("wish for a name or an address as network grants are written, such as api.example.com:443", "%v", err)
		}
	}
	return passed("%s", claims(tool))
}

func timeoutArgument(tool *pluginv1.ToolDescription) string {
	name := tool.GetTimeoutArgument()
	if name == "" {
		return ""
	}
	var s struct {
		Properties map[string]map[string]any `json:"properties"`
	}
	_ = json.Unmarshal(tool.GetInputSchema(), &s)
	property, ok := s.Properties[name]
	if t := typeOf(property); !ok || t != "integer" && t != "number" {
		return fmt.Sprintf("its timeout argument %q is not an integer of its input schema", name)
	}
	return ""
}

// claims in words.
func claims(tool *pluginv1.ToolDescription) string {
	list := host.Claims(tool.GetAnnotations(), tool.GetConcurrency() == pluginv1.Concurrency_CONCURRENCY_EXCLUSIVE)
	return cmp.Or(strings.Join(list, ", "), "none")
}
