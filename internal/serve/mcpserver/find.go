package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/tools/catalog"
	"github.com/toolhost/toolhost/turn"
)

// The tools of the short list, beside session_status.
const (
	findTool        = "find_tool"
	callRead        = "call_read"
	callWrite       = "call_write"
	callDestructive = "call_destructive"
)

// callerOf is the tool of the short list by which a tool is called. One that
// says of itself that it only reads, and that it destroys, destroys.
func callerOf(t catalog.Tool, shown *mcpsdk.Tool) string {
	switch {
	case t.Destructive:
		return callDestructive
	case shown.Annotations != nil && shown.Annotations.ReadOnlyHint:
		return callRead
	}
	return callWrite
}

// shortList is what the tools are found and called by, where Config says Search.
type shortList struct{ s *Server }

// list offers it. It never changes.
func (f *shortList) list() {
	f.s.sdk.AddTool(&mcpsdk.Tool{
		Name: findTool, Title: "Find a tool",
		Description: "Finds tools by words of their name and description. Each has the name of the tool that calls it (call_read, call_write or call_destructive) and the schema of its arguments. Without a query it lists the names of all tools. It changes nothing.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"words to look for, or a tool's name"}},"additionalProperties":false}`),
		Annotations: &mcpsdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
	}, f.find)
	for name, hints := range map[string]*mcpsdk.ToolAnnotations{
		callRead: {ReadOnlyHint: true, DestructiveHint: new(false)}, callWrite: {DestructiveHint: new(false)}, callDestructive: {DestructiveHint: new(true)},
	} {
		f.s.sdk.AddTool(&mcpsdk.Tool{
			Name: name, Title: callTitles[name], Annotations: hints,
			Description: callTitles[name] + ", as " + findTool + " says. Tools of another kind are refused.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"the tool's name, from find_tool"},` +
				`"arguments":{"type":"object","description":"the tool's arguments, by its schema"}},"required":["name"],"additionalProperties":false}`),
		}, f.callAs)
	}
}

var callTitles = map[string]string{
	callRead:        "Calls a tool that only reads",
	callWrite:       "Calls a tool that may change something",
	callDestructive: "Calls a tool that may destroy something",
}

// within is what a call of the short list names.
func within(p *mcpsdk.CallToolParamsRaw) (name string, arguments json.RawMessage, err error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(p.Arguments, &keys); err != nil || json.Unmarshal(keys["name"], &name) != nil || name == "" || len(name) > maxWordBytes {
		return "", nil, fmt.Errorf("name must be the name of a tool: %s finds it", findTool)
	}
	for key := range keys {
		if key != "name" && key != "arguments" {
			return name, nil, fmt.Errorf("unknown key %q: the tool's own arguments belong into arguments", cut(key, maxWordBytes))
		}
	}
	return name, keys["arguments"], nil
}

// callAs answers a call of the short list: with the call of the tool that it
// names, if that is of its kind.
func (f *shortList) callAs(ctx context.Context, r *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
	by := r.Params.Name
	name, arguments, err := within(r.Params)
	if err == nil {
		err = f.mayCall(ctx, by, name)
	}
	if err != nil {
		return notCalled(r, cmp.Or(name, by), err), nil
	}
	inner, params := *r, *r.Params
	params.Name, params.Arguments = name, arguments
	inner.Params = &params
	return f.s.call(ctx, &inner)
}

// notCalled is the answer to a call that is not made.
func notCalled(r *mcpsdk.CallToolRequest, name string, err error) *mcpsdk.CallToolResult {
	made := turn.Call{ID: rand.Text(), Tool: cut(name, maxWordBytes)}
	result := refusal(made, api.StatusInvalidArgs, api.ReasonCall, "", err.Error())
	if held, is := errors.AsType[*catalog.HeldError](err); is {
		result = heldBack(made, held)
	}
	return present(result, outputCheck{}, r.ProtocolVersion(), nil)
}

// mayCall says why a tool cannot be called so.
func (f *shortList) mayCall(ctx context.Context, by, name string) error {
	if name == turn.StatusTool {
		return fmt.Errorf("call %s by its own name", turn.StatusTool)
	}
	if err := f.s.rights.mayName(ctx, name); err != nil {
		return err
	}
	if right := f.s.offerOf(name).caller; right != by {
		return fmt.Errorf("%s calls no tool of its kind: use %s", by, right)
	}
	return nil
}

type (
	foundTools struct {
		Tools []foundTool `json:"tools"`
		// More is how many others there are.
		More int    `json:"more,omitempty"`
		Note string `json:"note,omitempty"`
	}
	foundTool struct {
		Name        string `json:"name"`
		Call        string `json:"call"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
		InputSchema any    `json:"inputSchema,omitempty"`
	}
)

const (
	// maxFound bounds the tools that a query finds, and maxFoundBytes what is said
	// of all but the first.
	maxFound      = 10
	maxFoundBytes = 64 << 10
	maxLineBytes  = 100 // of a description, in the list of all
)

// find answers find_tool.
func (f *shortList) find(ctx context.Context, r *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
	var in struct {
		Query string `json:"query"`
	}
	if len(r.Params.Arguments) > 0 {
		strict := json.NewDecoder(bytes.NewReader(r.Params.Arguments))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&in); err != nil {
			return notCalled(r, findTool, errors.New("it takes one argument, query, which must be text")), nil
		}
	}
	f.s.mu.Lock()
	offered := maps.Clone(f.s.offered)
	f.s.mu.Unlock()
	raw, err := json.Marshal(foundAmong(f.s.rights.offeredTo(ctx, offered), in.Query))
	if err != nil {
		return nil, fmt.Errorf("bug: cannot write what was found: %w", err)
	}
	return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{&mcpsdk.TextContent{Text: string(raw)}}}, nil
}

// foundAmong is what a query finds, the best first.
func foundAmong(offered map[string]offer, query string) foundTools {
	words := wordsOf(query)
	names := slices.Sorted(maps.Keys(offered))
	scores := map[string]int{}
	if len(words) > 0 {
		for _, name := range names {
			scores[name] = score(offered[name].tool, query, words)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return scores[name] == 0 })
		slices.SortStableFunc(names, func(a, b string) int { return scores[b] - scores[a] })
	}
	found := foundTools{Tools: []foundTool{}}
	size := 0
	for _, name := range names {
		one := describe(offered[name], len(words) > 0)
		raw, _ := json.Marshal(one)
		if size += len(raw); len(found.Tools) > 0 && size > maxFoundBytes || len(words) > 0 && len(found.Tools) == maxFound {
			break
		}
		found.Tools = append(found.Tools, one)
	}
	found.More = len(names) - len(found.Tools)
	switch {
	case len(names) == 0 && len(offered) > 0:
		found.Note = "No tool matches: try other words, or no query for the names of all."
	case found.More > 0:
		found.Note = "There are more: use a query with more, or other, words."
	case len(words) == 0 && len(names) > 0:
		found.Note = "A query with a tool's name shows the schema of its arguments."
	}
	return found
}

// describe is a tool whole, or as a line.
func describe(o offer, whole bool) foundTool {
	one := foundTool{Name: o.tool.Name, Call: o.caller}
	if !whole {
		line, _, _ := strings.Cut(strings.TrimSpace(cmp.Or(o.tool.Description, o.tool.Title)), "\n")
		one.Description = cut(line, maxLineBytes)
		return one
	}
	one.Title, one.Description, one.InputSchema = o.tool.Title, o.tool.Description, o.tool.InputSchema
	return one
}

// score says how well a tool matches: its name counts more than what it says.
func score(tool *mcpsdk.Tool, query string, words []string) (sum int) {
	name := strings.ToLower(tool.Name)
	if name == strings.ToLower(strings.TrimSpace(query)) {
		sum = 1000
	}
	title, rest := strings.ToLower(tool.Title), strings.ToLower(tool.Description+" "+strings.Join(argumentsOf(tool), " "))
	for _, word := range words {
		switch {
		case strings.Contains(name, word):
			sum += 8
		case strings.Contains(title, word):
			sum += 4
		case strings.Contains(rest, word):
			sum++
		}
	}
	return sum
}

func argumentsOf(tool *mcpsdk.Tool) []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	raw, _ := tool.InputSchema.(json.RawMessage)
	_ = json.Unmarshal(raw, &schema)
	return slices.Collect(maps.Keys(schema.Properties))
}

// maxQueryWords bounds the words of a query that are looked for.
const maxQueryWords = 32

// wordsOf are the words of a query, each without the s of a plural.
func wordsOf(query string) []string {
	list := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, word := range list {
		if len(word) > 3 {
			list[i] = strings.TrimSuffix(word, "s")
		}
	}
	return list[:min(len(list), maxQueryWords)]
}
