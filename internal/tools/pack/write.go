package pack

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/text"
	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Spec says what to pack.
type Spec struct {
	// Source is the plugin's executable, or a folder that is packed whole.
	Source string
	// Binary names the executable in a folder, with slashes; it may be empty if
	// the folder has only one at its top.
	Binary string
	// Name is the pack's; empty takes the binary's. Version is free text.
	Name, Version string
	// Tools are what the binary says of itself.
	Tools []*pluginv1.ToolDescription
}

// Contents is a pack that is ready to be written.
type Contents struct {
	Manifest Manifest
	base     string // the folder that Manifest.Files are in
	raw      []byte // the manifest
}

// Executable finds the plugin's executable of a Spec, as a path of the host.
func (s Spec) Executable() (string, error) {
	info, err := os.Stat(s.Source)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot pack %s: %w", s.Source, text.Cause(err))
	case !info.IsDir() && s.Binary != "":
		return "", fmt.Errorf("cannot pack %s: it is a file; name a binary in it only of a folder", s.Source)
	case !info.IsDir():
		return s.Source, nil
	case s.Binary != "":
		if err := checkPath(s.Binary); err != nil {
			return "", fmt.Errorf("cannot pack %s: %w", s.Source, err)
		}
		return filepath.Join(s.Source, filepath.FromSlash(s.Binary)), nil
	}
	return s.onlyExecutable()
}

// onlyExecutable looks at the top of the folder.
func (s Spec) onlyExecutable() (string, error) {
	entries, err := os.ReadDir(s.Source)
	if err != nil {
		return "", fmt.Errorf("cannot pack %s: %w", s.Source, text.Cause(err))
	}
	var found []string
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			found = append(found, entry.Name())
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("cannot pack %s: it has %d executables (%s), name the plugin's with --binary", s.Source, len(found), strings.Join(found, ", "))
	}
	return filepath.Join(s.Source, found[0]), nil
}

// Collect reads and hashes what is to be packed.
func Collect(s Spec) (*Contents, error) {
	c, err := collect(s)
	if err != nil {
		return nil, fmt.Errorf("cannot pack %s: %w", s.Source, err)
	}
	return c, nil
}

func collect(s Spec) (*Contents, error) {
	binary, err := s.Executable()
	if err != nil {
		return nil, err
	}
	c := &Contents{base: s.Source}
	if binary == s.Source {
		c.base = filepath.Dir(s.Source)
		err = c.addOne(filepath.Base(binary))
	} else {
		err = c.addAll()
	}
	if err != nil {
		return nil, err
	}
	m := &c.Manifest
	if m.Binary, err = filepath.Rel(c.base, binary); err != nil {
		return nil, err
	}
	m.Binary = filepath.ToSlash(m.Binary)
	m.SchemaVersion, m.Name, m.Version = SchemaVersion, s.Name, s.Version
	m.Name = cmp.Or(m.Name, filepath.Base(binary))
	m.Platform = platform(binary)
	m.describe(s.Tools)
	if err := m.check(); err != nil {
		return nil, err
	}
	c.raw, err = m.encode()
	return c, err
}

func (c *Contents) addOne(name string) error {
	file, err := os.Open(filepath.Join(c.base, name)) // which may be a link: it is named by the user
	if err != nil {
		return text.Cause(err)
	}
	defer file.Close()
	return c.add(name, file)
}

func (c *Contents) addAll() error {
	root, err := os.OpenRoot(c.base)
	if err != nil {
		return text.Cause(err)
	}
	from := dirSource{root}
	defer from.Close()
	err = from.each(func(name string, content io.Reader) error {
		if name == manifestName {
			return fmt.Errorf("it has a %s of its own: pack the folder that it was made from", manifestName)
		}
		return c.add(name, content.(*os.File))
	})
	slices.SortFunc(c.Manifest.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return err
}

func (c *Contents) add(name string, file *os.File) error {
	if err := checkPath(name); err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return err
	}
	c.Manifest.Files = append(c.Manifest.Files, File{
		Path: name, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil)), Executable: info.Mode()&0o111 != 0,
	})
	return nil
}

// platform is the binary's: a script runs on every processor.
func platform(binary string) string {
	file, err := elf.Open(binary)
	if err != nil {
		return runtime.GOOS
	}
	defer file.Close()
	if arch, ok := architectures[file.Machine]; ok {
		return runtime.GOOS + "/" + arch
	}
	return runtime.GOOS + "/" + strings.ToLower(strings.TrimPrefix(file.Machine.String(), "EM_"))
}

var architectures = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm",
	elf.EM_RISCV: "riscv64", elf.EM_S390: "s390x",
}

// Tar writes the pack as a plain tar. The same contents give the same bytes:
// neither times nor owners are in it.
func (c *Contents) Tar(w io.Writer) error {
	out := tar.NewWriter(w)
	if err := out.WriteHeader(header(manifestName, int64(len(c.raw)), false)); err != nil {
		return err
	}
	if _, err := out.Write(c.raw); err != nil {
		return err
	}
	for _, f := range c.Manifest.Files {
		if err := out.WriteHeader(header(f.Path, f.Bytes, f.Executable)); err != nil {
			return err
		}
		if err := c.copyTo(out, f); err != nil {
			return err
		}
	}
	return out.Close()
}

func header(name string, size int64, executable bool) *tar.Header {
	mode := int64(0o644)
	if executable {
		mode = 0o755
	}
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: mode}
}

// copyTo writes a file, which must still be the one that was hashed.
func (c *Contents) copyTo(w io.Writer, f File) error {
	file, err := os.Open(filepath.Join(c.base, filepath.FromSlash(f.Path)))
	if err != nil {
		return err
	}
	defer file.Close()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), io.LimitReader(file, f.Bytes))
	if err != nil {
		return fmt.Errorf("cannot copy %s: %w", f.Path, err)
	}
	if n != f.Bytes || hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s was changed while it was packed: pack again", f.Path)
	}
	return nil
}

// Dir writes the pack as the new folder path. After an error nothing is left.
func (c *Contents) Dir(path string) (err error) {
	if err := os.Mkdir(path, 0o755); err != nil {
		return fmt.Errorf("cannot make the pack %s: %w", path, text.Cause(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}()
	for _, f := range c.Manifest.Files {
		if err := c.writeFile(filepath.Join(path, filepath.FromSlash(f.Path)), f); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(path, manifestName), c.raw, 0o644)
}

func (c *Contents) writeFile(to string, f File) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(header("", 0, f.Executable).Mode)
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(c.copyTo(file, f), file.Close())
}

// ManifestSHA256 stands for the whole pack.
func (c *Contents) ManifestSHA256() string { return hash(c.raw) }
