package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/internal/tools/config"
	"github.com/toolhost/toolhost/supervisor"
)

// request is what the calls of an entry begin with, with the folder that it
// keeps and the secrets that it is given.
func (c *Catalog) request(entry config.Tool) (supervisor.Request, error) {
	request := entry.Request()
	if err := errors.Join(c.keepData(&request, entry), c.giveSecrets(&request, entry)); err != nil {
		return request, fmt.Errorf("tool %s (%s): %w", entry.Name, entry.Source, err)
	}
	if c.options.Adjust != nil {
		c.options.Adjust(&request)
	}
	return request, nil
}

// keepData gives a tool the workspace that stays from call to call.
func (c *Catalog) keepData(request *supervisor.Request, entry config.Tool) error {
	if !entry.Data {
		return nil
	}
	if c.options.State == "" {
		return fmt.Errorf("data needs a folder for what stays: set state, or --state")
	}
	dir := filepath.Join(c.options.State, "data", entry.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder for its data: %w", err)
	}
	request.Sandbox.Workspace = dir
	// Tools need know nothing of one another: a call of another turn, or of another
	// toolhost with the same state, would write to the same files.
	request.Lock = supervisor.Lock{File: dir + ".lock", Shared: entry.SharesData()}
	return nil
}

// giveSecrets reads the secrets that an entry is given, in place of those from before.
func (c *Catalog) giveSecrets(request *supervisor.Request, entry config.Tool) error {
	request.Secrets = nil
	for _, use := range entry.Secrets {
		i := slices.IndexFunc(c.loaded.Secrets, func(s config.Secret) bool { return s.Name == use.Secret })
		if i < 0 {
			return fmt.Errorf("there is no secret %q: define it under secrets", use.Secret)
		}
		value, err := c.loaded.Secrets[i].Read(c.options.Machine)
		if err != nil {
			return err
		}
		request.Secrets = append(request.Secrets, supervisor.Secret{Variable: use.Variable, File: use.File, Value: value})
	}
	return nil
}
