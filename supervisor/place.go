package supervisor

import (
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// maxMetaBytes bounds a call's metadata in a variable: the kernel takes 128 KiB.
const maxMetaBytes = 64 << 10

// placeEnv is what a command finds in its environment, where a plugin has it in its
// request.
func (c *Call) placeEnv() (env []string) {
	if c.request.Command == nil {
		return nil
	}
	p := c.request.Place
	for _, v := range []struct{ name, value string }{
		{api.CallIDVariable, p.CallID},
		{api.TurnIDVariable, p.TurnID},
		{api.SessionIDVariable, p.SessionID},
		{api.AgentIDVariable, p.AgentID},
		{api.ParentTurnIDVariable, p.ParentTurnID},
		{api.DepthVariable, depthText(p.TurnID, p.Depth)},
		{api.MetaVariable, c.metaText()},
	} {
		if v.value != "" && !strings.Contains(v.value, "\x00") {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

func depthText(turnID string, depth int) string {
	if turnID == "" {
		return ""
	}
	return strconv.Itoa(depth)
}

func (c *Call) metaText() string {
	if len(c.request.Meta) > maxMetaBytes {
		return ""
	}
	return string(c.request.Meta)
}

func (c *Call) place() *pluginv1.Place {
	p := c.request.Place
	return &pluginv1.Place{
		CallId: p.CallID, TurnId: p.TurnID, SessionId: p.SessionID, AgentId: p.AgentID, ParentTurnId: p.ParentTurnID, Depth: int32(p.Depth),
	}
}
