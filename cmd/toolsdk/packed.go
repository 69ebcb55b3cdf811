package main

import (
	"cmp"
	"strings"

	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/tools/pack"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/supervisor"
)

// target is what a command is about: a plugin's binary, or the one in a pack.
type target struct {
	tool   supervisor.Tool
	sha256 string // of a pack's binary, as it was compared
	dir    string // the copy of a pack that has more than its binary
	opened *pack.Opened
}

// openTarget opens a pack after every byte was compared with its manifest. It is
// to be closed.
func openTarget(path string) (*target, error) {
	if !pack.Is(path) {
		return &target{tool: supervisor.Tool{Path: path}}, nil
	}
	signals.OutliveReader() // the copy is removed by Close
	opened, err := pack.Open(path)
	if err != nil {
		return nil, usage(err)
	}
	t := &target{tool: supervisor.Tool{Path: opened.Binary, Label: path}, sha256: opened.SHA256, opened: opened}
	if len(opened.Manifest.Files) > 1 {
		t.dir = opened.Dir
	}
	return t, nil
}

// choose is the tool that is named, or the only one; nil lets the supervisor
// complain.
func (t *target) choose(d *supervisor.Description) (*pluginv1.ToolDescription, error) {
	if names := d.Names(); t.tool.Name == "" && len(names) > 1 {
		path := cmp.Or(t.tool.Label, t.tool.Path)
		return nil, exit.Usagef("%s has several tools: name one behind it, as in toolsdk run %s %s; it has %s", path, path, names[0], strings.Join(names, ", "))
	}
	return d.Tool(t.tool.Name), nil
}

func (t *target) Close() {
	if t.opened != nil {
		_ = t.opened.Close() // at worst a copy is left, which the next one removes
	}
}
