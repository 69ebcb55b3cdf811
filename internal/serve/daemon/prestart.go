package daemon

import (
	"github.com/toolhost/toolhost/api"
)

// prestart starts processes for the tools of the configuration in force that ask for it. It
// does not wait: tools may have to be described first.
func (d *daemon) prestart() {
	now := d.tools.current.Load()
	d.serving.Go(func() {
		requests := now.catalog.Prestart(d.until)
		if d.until.Err() == nil && d.tools.current.Load() == now {
			d.host.Prestart(requests)
		}
	})
}

// prestarted returns the processes that wait for calls.
func (d *daemon) prestarted() (list []api.Prestarted) {
	for _, s := range d.host.Prestarted().Stocks {
		list = append(list, api.Prestarted{Tool: s.Name, Wanted: s.Want, Waiting: s.Waiting})
	}
	return list
}
