package main

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugin"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// transcript is what a tool has sent to a host that is not there.
type transcript struct {
	text   strings.Builder
	logs   []string
	chunks []string
	onText func() // called after each text
}

func (t *transcript) output() *plugin.Output {
	return plugin.NewOutput(func(event *pluginv1.CallEvent) error {
		if log := event.GetLog(); log != nil {
			t.logs = append(t.logs, log.GetMessage())
		}
		if text := event.GetContent().GetText(); text != "" {
			t.text.WriteString(text)
			t.chunks = append(t.chunks, text)
			if t.onText != nil {
				t.onText()
			}
		}
		return nil
	})
}

// lines are the matches, with the paths below root.
func (t *transcript) lines(root string) []string {
	text := strings.ReplaceAll(t.text.String(), root+"/", "")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// tree makes a folder with files of the given contents.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		write(t, root, name, content)
	}
	return root
}

// failing is an Output whose host is gone.
func failing(err error) *plugin.Output {
	return plugin.NewOutput(func(*pluginv1.CallEvent) error { return err })
}
