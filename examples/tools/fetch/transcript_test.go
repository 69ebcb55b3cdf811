package main

import (
	"strings"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// transcript is what a tool has sent to a host that is not there.
type transcript struct {
	text   strings.Builder
	blobs  []string       // type and content
	onText func(n string) // called after each text
}

func (t *transcript) output() *plugin.Output {
	return plugin.NewOutput(func(event *pluginv1.CallEvent) error {
		if blob := event.GetContent().GetBlob(); blob != nil {
			t.blobs = append(t.blobs, blob.GetMimeType()+" "+string(blob.GetData()))
		}
		if text := event.GetContent().GetText(); text != "" {
			t.text.WriteString(text)
			if t.onText != nil {
				t.onText(text)
			}
		}
		return nil
	})
}
