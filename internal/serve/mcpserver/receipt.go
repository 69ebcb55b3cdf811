package mcpserver

import (
	"encoding/json"
	"slices"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// receipt is what toolhost itself says of a call, within maxReceiptBytes. What
// the tool has put out is in the content.
func receipt(r *api.Result) json.RawMessage {
	own := *r
	own.Content = []api.Content{}
	for _, s := range []*api.StreamOutput{&own.Output.Stdout, &own.Output.Stderr} {
		s.Head, s.Tail = "", ""
	}
	for i := 0; ; i++ {
		raw, err := json.Marshal(own)
		switch {
		case err == nil && len(raw) <= maxReceiptBytes:
			return raw
		case i == len(shorter):
			return json.RawMessage(`{}`) // a bug, and no reason to lose the result
		}
		shorter[i](&own)
	}
}

// shorter are the steps by which a receipt that is too long becomes shorter.
var shorter = []func(*api.Result){
	func(r *api.Result) {
		r.Structured = nil
		r.Warnings = append(slices.Clone(r.Warnings), notWhole)
	},
	func(r *api.Result) {
		r.Files, r.FilesIncomplete = []api.File{}, r.FilesIncomplete || len(r.Files) > 0
		if e := r.ToolError; e != nil {
			r.ToolError = &api.ToolError{Kind: cut(e.Kind, maxWordBytes), Message: cut(e.Message, maxDetailBytes)}
		}
		r.Message = cut(r.Message, maxDetailBytes)
	},
	core,
}

const (
	notWhole       = "this receipt is incomplete: it would be larger than 16 KiB"
	maxDetailBytes = 1 << 10
	maxWordBytes   = 128
)

// core leaves what has a bound of its own.
func core(r *api.Result) {
	short := supervisor.Verdict{
		CallID: cut(r.CallID, maxWordBytes), Tool: cut(r.Tool, maxWordBytes), Status: r.Status,
		Reason: cut(r.Reason, maxWordBytes), Decider: cut(r.Decider, maxWordBytes),
	}.Result()
	short.TurnID, short.SHA256, short.Code = cut(r.TurnID, maxWordBytes), cut(r.SHA256, maxWordBytes), r.Code
	short.Details = r.Details
	short.Overran, short.Partial, short.Unrecorded, short.RemainingMs = r.Overran, r.Partial, r.Unrecorded, r.RemainingMs
	short.FilesIncomplete, short.Warnings = r.FilesIncomplete, []string{notWhole}
	short.Timing, short.Kill, short.Exit, short.Usage, short.Limits = r.Timing, r.Kill, r.Exit, r.Usage, r.Limits
	short.Timing.SourceDetail = cut(r.Timing.SourceDetail, maxWordBytes)
	short.Sandbox.Tier, short.Sandbox.Cgroup = r.Sandbox.Tier, r.Sandbox.Cgroup
	short.Retry = r.Retry
	short.Retry.Hint = cut(r.Retry.Hint, maxDetailBytes)
	*r = *short
}
