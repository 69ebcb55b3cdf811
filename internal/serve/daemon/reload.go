package daemon

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/text"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// reloadLimit bounds how long a reload may block the daemon; tools that take longer are
// described behind it.
const reloadLimit = 10 * time.Second

// maxNames bounds the characters of the names of tools in a line of the log.
const maxNames = 200

// reload reads the configuration and puts it in force. One with an error changes nothing.
// Running calls keep what they began with.
func (d *daemon) reload() {
	d.manager.reloading()
	defer func() { d.manager.ready(d.status()) }()
	loaded, err := d.options.Load()
	if err == nil {
		err = d.check(loaded)
	}
	d.telemetry.Reloaded(err == nil)
	if err != nil {
		d.trail.notConfigured(err)
		d.keepOld(err)
		return
	}
	for _, w := range loaded.Warnings {
		d.logger.Warn("configuration: " + w.String())
	}
	d.trail.configured("config.reload", loaded)
	before := d.tools.current.Load()
	diff := config.Compare(before.loaded, loaded)
	next := d.tools.snapshot(loaded)
	next.catalog.Inherit(before.catalog)
	ctx, cancel := context.WithTimeout(context.Background(), reloadLimit)
	defer cancel()
	d.tools.current.Store(next)
	d.book() // before a group that was just found can go
	d.mcp.reload(ctx)
	if len(diff.Changed)+len(diff.Removed) > 0 {
		d.host.EndIdle()
	}
	d.prestart()
	if len(before.loaded.Access) > 0 {
		d.tellGuests()
	}
	d.tellLockedOut()
	for _, path := range diff.Restart {
		d.logger.Warn("the setting "+path+" has changed, and takes effect when the daemon is restarted", "setting", path)
	}
	if len(diff.Removed) > 0 {
		names := text.Cut(strings.Join(diff.Removed, ", "), maxNames)
		d.logger.Warn("the configuration has lost tools", "removed", len(diff.Removed), "added", len(diff.Added), "left", len(loaded.Tools), "names", names)
	}
	d.logger.Info("configuration loaded", "file", loaded.Path, "tools", len(loaded.Tools), "added", diff.Added, "changed", diff.Changed, "removed", diff.Removed)
}

func (d *daemon) keepOld(err error) {
	if problems, ok := errors.AsType[config.Problems](err); ok {
		for _, p := range problems {
			d.logger.Error("configuration not loaded: " + p.String())
		}
	} else {
		d.logger.Error("configuration not loaded", "error", err)
	}
	d.logger.Warn("the configuration stays as it was")
}
