package call

import (
	"fmt"

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

// cleaned is why JSON of one event is not passed on: its content, which becomes
// text, its structured result, or the schema of a question.
type cleaned struct{ content, structured, ask error }

// clean leaves in an event of a tool no JSON but such as everybody can read. It
// runs where events are received: large JSON takes time.
func clean(event *pluginv1.CallEvent) (j cleaned) {
	switch e := event.GetEvent().(type) {
	case *pluginv1.CallEvent_Content:
		j.content = cleanContent(e.Content)
	case *pluginv1.CallEvent_Ask:
		if len(e.Ask.GetSchema()) > 0 {
			e.Ask.Schema, j.ask = wirejson.Clean(e.Ask.GetSchema())
		}
	case *pluginv1.CallEvent_Result:
		for _, content := range e.Result.GetContent() {
			if err := cleanContent(content); err != nil {
				j.content = err
			}
		}
		if len(e.Result.GetStructured()) > 0 {
			e.Result.Structured, j.structured = wirejson.Clean(e.Result.GetStructured())
		}
		e.Result.Meta = cleanOrNone(e.Result.GetMeta())
		if e.Result.GetError() != nil {
			e.Result.Error.Rpc = cleanOrNone(e.Result.GetError().GetRpc())
		}
	case *pluginv1.CallEvent_Log:
		e.Log.Data = cleanOrNone(e.Log.GetData())
	}
	return j
}

// cleanOrNone leaves out what nobody could read: it is what an adapter adds.
func cleanOrNone(raw []byte) []byte {
	clean, err := wirejson.Clean(raw)
	if len(raw) == 0 || err != nil {
		return nil
	}
	return clean
}

func cleanContent(content *pluginv1.Content) error {
	if len(content.Extra) > 0 {
		var err error
		if content.Extra, err = wirejson.Clean(content.Extra); err != nil {
			return err
		}
	}
	part, ok := content.GetContent().(*pluginv1.Content_Json)
	if !ok {
		return nil
	}
	clean, err := wirejson.Clean(part.Json)
	if err != nil {
		content.Content = &pluginv1.Content_Text{Text: string(part.Json)}
		return err
	}
	part.Json = clean
	return nil
}

// clean does the same for what a command's output was read as.
func (in *commandContent) clean() {
	for i, content := range in.content {
		if content.Type != "json" {
			continue
		}
		clean, err := wirejson.Clean(content.JSON)
		if err != nil {
			in.cleaned.content = err
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

// onCleaned warns of what is not passed on, once of content. The call's status
// stays what it is, unless the tool has promised a structured result.
func (o *owner) onCleaned(of cleaned) {
	if of.content != nil && !o.content.unfit {
		o.content.unfit = true
		o.warn(fmt.Sprintf("%s: JSON among the tool's content is kept as text: %v", droppedCode, of.content))
	}
	if of.structured == nil {
		return
	}
	o.warn(fmt.Sprintf("%s: the tool's structured result is left out: %v", droppedCode, of.structured))
	if o.p.HasOutputSchema() {
		o.found.OutputErr = fmt.Errorf("the tool has an output schema, and its structured result cannot be passed on: %w", of.structured)
	}
}
