// Package pack puts a tool's binary, the files that it comes with and a
// manifest into a folder or a plain tar, and opens such packs: every byte is
// compared with the manifest's hashes, and a private copy of the compared
// bytes is run.
//
// A pack is not signed: who can change it can change its manifest too. Pin
// the manifest's own hash, which Opened has.
package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/lazy"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
	"github.com/toolhost/toolhost/plugin/schema"
)

// SchemaVersion is that of manifest.json. Fields may be added under the same
// version.
const SchemaVersion = 1

// manifestName is the manifest's path in a pack.
const manifestName = "manifest.json"

// What a pack may have at most. All files together are Manifest.Files and the
// manifest itself.
const (
	MaxBytes         = 1 << 30
	MaxFiles         = 4096
	MaxManifestBytes = 8 << 20
	maxPathBytes     = 1024
	maxTextBytes     = 256
)

// Manifest says what is in a pack.
type Manifest struct {
	SchemaVersion int `json:"schemaVersion"`
	// Name and Version are for people; Version is free text.
	Name    string `json:"name"`
	Version string `json:"version"`
	// Platform is GOOS/GOARCH, or only GOOS for what runs on every processor.
	Platform string `json:"platform"`
	// Binary is the path of the plugin's executable, one of Files.
	Binary string `json:"binary"`
	Tools  []Tool `json:"tools"`
	// Wish is what the tools together would like their sandbox to grant. Nothing
	// of it is granted by being wished.
	Wish Wish `json:"wish"`
	// Files are all that the pack has besides the manifest, sorted by path.
	Files []File `json:"files"`
}

// Tool is what the binary says of one of its tools.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

// Wish is a sandbox as tools would like it. Zero limits say nothing.
type Wish struct {
	Read        []string `json:"read"`
	Write       []string `json:"write"`
	Network     bool     `json:"network"`
	Reach       []string `json:"reach,omitempty"`
	MemoryBytes int64    `json:"memoryBytes"`
	Pids        int64    `json:"pids"`
}

// File is one file of a pack.
type File struct {
	// Path is relative to the pack, with slashes.
	Path       string `json:"path"`
	Bytes      int64  `json:"bytes"`
	SHA256     string `json:"sha256"`
	Executable bool   `json:"executable,omitempty"`
}

// describe puts what the binary says of itself into the manifest.
func (m *Manifest) describe(tools []*pluginv1.ToolDescription) {
	m.Tools = []Tool{}
	m.Wish = Wish{Read: []string{}, Write: []string{}}
	for _, t := range tools {
		m.Tools = append(m.Tools, Tool{
			Name: t.GetName(), Title: t.GetTitle(), Description: t.GetDescription(),
			InputSchema: t.GetInputSchema(), OutputSchema: t.GetOutputSchema(),
		})
		w := t.GetWish()
		m.Wish.Read = union(m.Wish.Read, w.GetRead())
		m.Wish.Write = union(m.Wish.Write, w.GetWrite())
		m.Wish.Network = m.Wish.Network || w.GetNetwork()
		m.Wish.Reach = union(m.Wish.Reach, w.GetReach())
		m.Wish.MemoryBytes = max(m.Wish.MemoryBytes, w.GetMemoryBytes())
		m.Wish.Pids = max(m.Wish.Pids, w.GetPids())
	}
}

// encode is the manifest as it stands in a pack.
func (m *Manifest) encode() ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(m); err != nil {
		return nil, err
	}
	if b.Len() > MaxManifestBytes {
		return nil, fmt.Errorf("the manifest would have %d bytes, at most %d are allowed", b.Len(), MaxManifestBytes)
	}
	return b.Bytes(), nil
}

// decodeManifest reads a manifest that may be anybody's.
func decodeManifest(raw []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%s is not a manifest: %w", manifestName, schema.DecodeError(err))
	}
	if m.SchemaVersion != SchemaVersion {
		return nil, fmt.Errorf("%s has schemaVersion %d, this program knows %d: use a toolhost of the pack's time", manifestName, m.SchemaVersion, SchemaVersion)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	return &m, nil
}

var (
	nameForm = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	hashForm = lazy.Regexp(`^[0-9a-f]{64}$`)
)

// check validates a manifest, also one of our own.
func (m *Manifest) check() error {
	switch {
	case !nameForm().MatchString(m.Name):
		return fmt.Errorf("name %q: want a letter or digit, then up to 127 of those and . _ -", m.Name)
	case len(m.Version) > maxTextBytes || !printable(m.Version):
		return fmt.Errorf("version %q: want at most %d bytes of printable text", m.Version, maxTextBytes)
	case len(m.Files) == 0 || len(m.Files) > MaxFiles:
		return fmt.Errorf("it lists %d files, want 1 to %d", len(m.Files), MaxFiles)
	}
	return m.checkFiles()
}

func (m *Manifest) checkFiles() error {
	total, binary := int64(0), false
	seen := map[string]bool{manifestName: true}
	for _, f := range m.Files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		if seen[f.Path] {
			return fmt.Errorf("file %q is listed twice, or is the manifest", f.Path)
		}
		seen[f.Path] = true
		if !hashForm().MatchString(f.SHA256) || f.Bytes < 0 {
			return fmt.Errorf("file %q: want its sha256 in lower-case hexadecimal and its size", f.Path)
		}
		if total += f.Bytes; f.Bytes > MaxBytes || total > MaxBytes {
			return fmt.Errorf("its files have more than %d bytes together", int64(MaxBytes))
		}
		binary = binary || f.Path == m.Binary && f.Executable
	}
	if !binary {
		return fmt.Errorf("binary %q is not among its executable files", m.Binary)
	}
	return nil
}

// checkPath refuses what would lead out of a pack, or is not what it seems.
func checkPath(name string) error {
	if len(name) > maxPathBytes || !printable(name) || strings.Contains(name, `\`) ||
		!filepath.IsLocal(name) || path.Clean(name) != name || name == "." {
		return fmt.Errorf("path %q: want a plain relative path that stays in the pack", name)
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// checkPlatform refuses a pack of another platform than this program's.
func (m *Manifest) checkPlatform() error {
	here := runtime.GOOS + "/" + runtime.GOARCH
	if m.Platform == here || m.Platform == runtime.GOOS {
		return nil
	}
	return fmt.Errorf("it is for %q, this machine is %s: take the pack for %s", m.Platform, here, here)
}

var errNoManifest = errors.New("it has no " + manifestName + ": make packs with toolsdk pack")

func union(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
