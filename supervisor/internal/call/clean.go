package call

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/api"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/wirejson"
)

// droppedCode begins the warning about JSON of a tool that is not passed on.
const droppedCode = "structured_dropped"

// DroppedWarning is the warning about output of a command that is JSON and is kept
// as text: so many lines, 0 for all of it.
func DroppedWarning(lines int64, why error) string {
	what := "the command's JSON is"
	switch {
	case lines == 1:
		what = "1 line of JSON is"
	case lines > 1:
		what = fmt.Sprintf("%d lines of JSON are", lines)
	}
	return fmt.Sprintf("%s: %s kept as text: %v", droppedCode, what, why)
}

// cleaned is what JSON of one event is not passed on: its structured result, the
// question itself, and what is left out of the rest.
type cleaned struct {
	structured, ask error
	leftOut         []leftOut
}

// leftOut says what becomes of JSON, and why.
type leftOut struct {
	what string
	why  error
}

const (
	keptAsText     = "JSON among the tool's content is kept as text"
	withoutFields  = "further fields of the tool's content are left out"
	withoutMeta    = "further fields of the tool's result are left out"
	withoutRPC     = "fields of the error of the tool's server are left out"
	withoutLogData = "the value of a message of the tool's log is left out"
	withoutLogMeta = "further fields of a message of the tool's log are left out"
	noQuestion     = "a question of the tool is refused"
)

func (j *cleaned) note(what string, why error) {
	if why != nil {
		j.leftOut = append(j.leftOut, leftOut{what, why})
	}
}

// clean leaves in an event of a tool no JSON but such as everybody can read. It
// runs where events are received: large JSON takes time.
// What is not a call of a tool has a structured result with fields as MCP has them.
func clean(event *pluginv1.CallEvent, ofTool bool) (j cleaned) {
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Content:
		j.content(e.Content)
	case *pluginv1.CallEvent_Ask:
		j.question(e.Ask)
	case *pluginv1.CallEvent_Result:
		j.result(e.Result, ofTool)
	case *pluginv1.CallEvent_Log:
		_ = j.optional(withoutLogData, &e.Log.Data, wirejson.Clean)
		_ = j.optional(withoutLogMeta, &e.Log.Meta, wirejson.CleanFields)
	}
	return j
}

func (j *cleaned) result(r *pluginv1.Result, ofTool bool) {
	for _, content := range r.GetContent() {
		j.content(content)
	}
	switch {
	case !ofTool:
		_ = j.optional(withoutMeta, &r.Structured, wirejson.CleanFields)
	case len(r.GetStructured()) > 0:
		r.Structured, j.structured = wirejson.Clean(r.GetStructured())
	}
	if err := j.optional(withoutMeta, &r.Meta, wirejson.CleanFields); err != nil && asksForMore(r.Meta) {
		r.Error, r.Meta = &pluginv1.ToolError{Kind: pluginv1.ToolError_KIND_ERROR, Message: "the tool's server asks for what cannot be passed on: " + err.Error()}, nil
	}
	if r.GetError() != nil {
		_ = j.optional(withoutRPC, &r.Error.Rpc, wirejson.CleanFields)
	}
}

// asksForMore says whether a server has not given its result yet.
func asksForMore(meta []byte) bool {
	var result struct {
		Type string `json:"resultType"`
	}
	return json.Unmarshal(meta, &result) == nil && result.Type == "input_required"
}

// question refuses one that its reader could not read.
func (j *cleaned) question(ask *pluginv1.Ask) {
	j.mustFit(&ask.Schema)
	for _, request := range ask.GetRequests() {
		j.mustFit(&request.Params)
	}
	j.note(noQuestion, j.ask)
}

func (j *cleaned) mustFit(raw *[]byte) {
	if clean, err := wirejson.Clean(*raw); len(*raw) > 0 && err != nil {
		j.ask = err
	} else {
		*raw = clean
	}
}

// optional leaves out what does not fit of what may be absent, and says why.
func (j *cleaned) optional(what string, raw *[]byte, clean func([]byte) (json.RawMessage, error)) error {
	if len(*raw) == 0 {
		return nil
	}
	fits, err := clean(*raw)
	j.note(what, err)
	*raw = fits
	return err
}

func (j *cleaned) content(content *pluginv1.Content) {
	_ = j.optional(withoutFields, &content.Extra, wirejson.CleanFields)
	part, ok := content.GetContent().(*pluginv1.Content_Json)
	if !ok {
		return
	}
	clean, err := wirejson.Clean(part.Json)
	if err != nil {
		content.Content = &pluginv1.Content_Text{Text: string(part.Json)}
		j.note(keptAsText, err)
		return
	}
	part.Json = clean
}

// clean does the same for what a command's output was read as.
func (in *commandContent) clean() {
	for i, content := range in.content {
		if content.Type != "json" {
			continue
		}
		clean, err := wirejson.Clean(content.JSON)
		if err != nil {
			in.cleaned.note(keptAsText, err)
			in.content[i] = api.Content{Type: "text", Text: string(content.JSON)}
			continue
		}
		in.content[i].JSON = clean
	}
	if len(in.last.structured) == 0 {
		return
	}
	raw := in.last.structured
	if in.last.structured, in.cleaned.structured = wirejson.Clean(raw); in.cleaned.structured != nil {
		in.content = append(in.content, api.Content{Type: "text", Text: string(raw)}) // all that there is of it
	}
}

// onCleaned warns of what is not passed on. The call's status stays what it is,
// unless the tool has promised a structured result.
func (o *owner) onCleaned(of cleaned) {
	for _, one := range of.leftOut {
		o.warnLeftOut(one.what, one.why)
	}
	if of.structured == nil {
		return
	}
	o.warnLeftOut("the tool's structured result is left out", of.structured)
	if o.p.HasOutputSchema() {
		o.found.OutputErr = fmt.Errorf("the tool has an output schema, and its structured result cannot be passed on: %w", of.structured)
	}
}

// warnLeftOut warns once of each kind.
func (o *owner) warnLeftOut(what string, why error) {
	if slices.Contains(o.leftOut, what) {
		return
	}
	o.leftOut = append(o.leftOut, what)
	o.warn(fmt.Sprintf("%s: %s: %v", droppedCode, what, why))
}
