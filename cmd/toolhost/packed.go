package main

import (
	"github.com/toolhost/toolhost/internal/cli/exit"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/internal/tools/pack"
	"github.com/toolhost/toolhost/supervisor"
)

// unpack makes a request for the plugin in a pack, whose copy is kept until the
// app is closed.
func (k *app) unpack(r supervisor.Request) (supervisor.Request, error) {
	r, err := k.packs.Request(r)
	if err != nil {
		return r, exit.With(exit.Usage, err)
	}
	return r, nil
}

// packWarnings are about packs that calls could not run: each is opened as for one.
func packWarnings(loaded *config.Loaded) (list config.Problems) {
	signals.OutliveReader()
	var packs pack.Cache
	defer func() { _ = packs.Close() }() // at worst a copy is left, which the next one removes
	for _, tool := range loaded.Tools {
		if tool.Type != config.TypePlugin || !pack.Is(tool.Plugin.Path) {
			continue
		}
		if _, err := packs.Request(supervisor.Request{Tool: tool.Plugin, SHA256: tool.SHA256}); err != nil {
			list = append(list, tool.Problem(err))
		}
	}
	return list
}
