// Package scaffold makes new tool projects: code, tests, a Makefile and a
// module that builds.
package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/toolhost/toolhost/internal/text"
)

//go:embed template
var templates embed.FS

// Options of New.
type Options struct {
	// Name is the tool's, and its binary's: a letter, then up to 63 of A-Z,
	// a-z, 0-9, _ and -.
	Name string
	// Module is the Go module; empty is example.com/NAME.
	Module string
	// Dir is the folder to be made; empty is Name in the working directory.
	Dir string
	// Release is the SDK's released version. Without one, SDK is a checkout
	// that go.mod refers to (see FindSDK).
	Release, SDK string
	// Toolsdk is the command that the Makefile calls.
	Toolsdk string
	// NoTidy leaves go.mod with everything that the SDK might need.
	NoTidy bool
}

// Project is what was made.
type Project struct {
	Dir   string
	Files []string // sorted, relative to Dir
	// Warning says what the user has to do himself; empty if nothing.
	Warning string
}

// New makes a project in a new folder. After an error nothing is left of it.
func New(ctx context.Context, o Options) (*Project, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(o.Dir, 0o755); err != nil {
		return nil, cannotMake(o.Dir, err)
	}
	p, err := o.fill(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make the project %s: %w", o.Dir, err), os.RemoveAll(o.Dir))
	}
	return p, nil
}

func cannotMake(dir string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: remove it, or name another folder with --dir", dir)
	}
	return fmt.Errorf("cannot make the folder %s: %w", dir, text.Cause(err))
}

var (
	nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	// moduleForm is a part of what Go allows (module.CheckPath): ASCII elements
	// that neither begin nor end with a dot.
	moduleForm = regexp.MustCompile(`^[A-Za-z0-9_~-]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?(/[A-Za-z0-9_~-]([A-Za-z0-9._~-]*[A-Za-z0-9_~-])?)*$`)
)

// takenNames cannot be a tool's: one is every host's, the other a file of the
// project.
var takenNames = map[string]bool{"session_status": true, "Makefile": true}

func (o *Options) complete() error {
	switch {
	case !nameForm.MatchString(o.Name):
		return fmt.Errorf("name %q: want a letter, then up to 63 of A-Z, a-z, 0-9, _ and -", o.Name)
	case takenNames[o.Name]:
		return fmt.Errorf("name %q is taken: give another one", o.Name)
	}
	o.Module = cmp.Or(o.Module, "example.com/"+o.Name)
	if !moduleForm.MatchString(o.Module) || len(o.Module) > 255 {
		return fmt.Errorf("%q is not a valid module path: want something like example.com/%s", o.Module, o.Name)
	}
	o.Dir = cmp.Or(o.Dir, o.Name)
	if o.Toolsdk == "" || strings.ContainsAny(o.Toolsdk, " \t\n$#:\\'\"()&|;<>`*?") {
		o.Toolsdk = "toolsdk"
	}
	return nil
}

// fill writes the files into the new folder.
func (o *Options) fill(ctx context.Context) (*Project, error) {
	p := &Project{Dir: o.Dir}
	entries, err := templates.ReadDir("template")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".tmpl")
		if name == "gitignore" {
			name = ".gitignore"
		}
		raw, err := o.render(entry.Name())
		if err != nil {
			return nil, err
		}
		if err := p.write(name, raw); err != nil {
			return nil, err
		}
	}
	if err := o.writeModule(ctx, p); err != nil {
		return nil, err
	}
	return p, ctx.Err()
}

func (o *Options) render(name string) ([]byte, error) {
	t, err := template.ParseFS(templates, "template/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, o)
	return b.Bytes(), err
}

func (p *Project) write(name string, raw []byte) error {
	p.Files = append(p.Files, name)
	return os.WriteFile(filepath.Join(p.Dir, name), raw, 0o644)
}
