package main

import (
	"strings"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// transcript is what a tool has sent to a host that is not there.
type transcript struct {
	text   strings.Builder
	logs   []string
	onText func() // called after each text
}

func (t *transcript) output() *plugin.Output {
	return plugin.NewOutput(func(event *pluginv1.CallEvent) error {
		if log := event.GetLog(); log != nil {
			t.logs = append(t.logs, log.GetMessage())
		}
		if text := event.GetContent().GetText(); text != "" {
			t.text.WriteString(text)
			if t.onText != nil {
				t.onText()
			}
		}
		return nil
	})
}
