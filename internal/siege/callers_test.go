package siege

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/client"
)

const (
	// crowd is how many hostile tools a batch calls that calls several.
	crowd = 12
	// maxDepth is how deep JSON from a tool may nest: what all readers can read.
	maxDepth = 128
)

// caller calls a hostile tool, and now and then a crowd of them at once.
func caller(of tool) hostileClient {
	return hostileClient{name: "calls " + of.name, do: func(ctx context.Context, m *mob) error {
		tools := []string{of.called()}
		for crowded := rand.IntN(5) == 0; crowded && len(tools) < crowd; {
			tools = append(tools, hostileTools[rand.IntN(len(hostileTools))].called())
		}
		return m.turn(ctx, headless(), func(c *client.Client, id string) error { return m.callAll(ctx, c, id, tools) })
	}}
}

func (m *mob) callAll(ctx context.Context, c *client.Client, turnID string, tools []string) error {
	var calls []api.Call
	for i, tool := range tools {
		calls = append(calls, api.Call{ID: fmt.Sprint(i), Tool: tool, Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, rand.Int64()))})
	}
	results, err := c.Run(ctx, turnID, calls)
	if err != nil {
		return err
	}
	if len(results) != len(calls) {
		return wrong(fmt.Sprintf("%d results of %d calls", len(results), len(calls)))
	}
	for i, r := range results {
		m.count(tools[i], r)
		if found := untrue(tools[i], fmt.Sprint(i), r); found != "" {
			return wrong(found)
		}
	}
	return nil
}

func (m *mob) count(tool string, r *api.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tale.Statuses[tool] == nil {
		m.tale.Statuses[tool] = map[string]int{}
	}
	if r != nil {
		m.tale.Statuses[tool][strings.TrimSuffix(string(r.Status)+" "+string(r.Reason), " ")]++
	}
}

// untrue says what no result of any hostile tool may be.
func untrue(tool, id string, r *api.Result) string {
	switch {
	case r == nil:
		return tool + ": no result"
	case r.CallID != id:
		return tool + ": the result of another call"
	case r.Status == api.StatusUnkillable, r.Kill.Survivors > 0:
		return fmt.Sprintf("%s: %s, %d survivors: %s", tool, r.Status, r.Kill.Survivors, r.Message)
	case r.Status == api.StatusStartFailed && r.Reason == "host":
		return tool + ": the host cannot start it: " + r.Message
	case r.Status != api.StatusOK && r.Message == "":
		return tool + ": no message with " + string(r.Status)
	case strings.HasPrefix(tool, "start") && r.Status == api.StatusOK:
		return tool + ": ok without a handshake"
	case depth(r.Structured) > maxDepth:
		return fmt.Sprintf("%s: a structured result %d deep", tool, depth(r.Structured))
	}
	for _, c := range r.Content {
		if depth(c.JSON) > maxDepth {
			return fmt.Sprintf("%s: content %d deep", tool, depth(c.JSON))
		}
	}
	return ""
}

// depth is how deep JSON nests.
func depth(raw json.RawMessage) (deepest int) {
	now, quoted, escaped := 0, false, false
	for _, b := range raw {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = b == '\\', b != '"'
		case b == '"':
			quoted = true
		case b == '[' || b == '{':
			now++
			deepest = max(deepest, now)
		case b == ']' || b == '}':
			now--
		}
	}
	return deepest
}
