package prepare

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
func (p *Prepared) placeEnv() (env []string) {
	if p.Request.Command == nil {
		return nil
	}
	at := p.Request.Place
	for _, v := range []struct{ name, value string }{
		{api.CallIDVariable, at.CallID},
		{api.TurnIDVariable, at.TurnID},
		{api.SessionIDVariable, at.SessionID},
		{api.AgentIDVariable, at.AgentID},
		{api.ParentTurnIDVariable, at.ParentTurnID},
		{api.DepthVariable, depthText(at.TurnID, at.Depth)},
		{api.MetaVariable, p.metaText()},
		{api.TraceParentVariable, api.TraceParent(p.Request.Meta)},
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

func (p *Prepared) metaText() string {
	if len(p.Request.Meta) > maxMetaBytes {
		return ""
	}
	return string(p.Request.Meta)
}

func (p *Prepared) place() *pluginv1.Place {
	at := p.Request.Place
	return &pluginv1.Place{
		CallId: at.CallID, TurnId: at.TurnID, SessionId: at.SessionID, AgentId: at.AgentID, ParentTurnId: at.ParentTurnID, Depth: int32(at.Depth),
	}
}
