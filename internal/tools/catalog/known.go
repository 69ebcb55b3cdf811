package catalog

import (
	"errors"

	"github.com/toolhost/toolhost/internal/tools/config"
)

// ErrNotDescribed: nobody has asked for the tool yet.
var ErrNotDescribed = errors.New("the tool is not described yet")

// Known is Find for those who cannot wait: it describes nothing, and an error is
// that of the last attempt, or ErrNotDescribed.
func (c *Catalog) Known(name string) (Tool, error) {
	return c.find(name, c.peek)
}

func (c *Catalog) peek(entry config.Tool) ([]Tool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.finished(entry.Name); k != nil {
		return c.release(entry, k.tools), nil
	}
	if last, failed := c.failed[entry.Name]; failed && c.known[entry.Name] == nil {
		return nil, last.err
	}
	return nil, ErrNotDescribed
}

// Described are the names of all tools that have been described.
func (c *Catalog) Described() (names []string) {
	for _, entry := range c.loaded.Tools {
		tools, _ := c.peek(entry)
		for _, t := range tools {
			names = append(names, t.Name)
		}
	}
	return names
}
