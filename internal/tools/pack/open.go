package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/internal/text"
)

// Opened is a pack that was found to be what its manifest says. It is a copy
// in a folder of its own, which nobody but this user may enter; Close removes
// it. A copy whose process died before Close is removed by the next Open.
type Opened struct {
	Manifest Manifest
	// Dir is the copy, Binary the path of the plugin's executable in it and
	// SHA256 that file's hash: give it to the supervisor, so that the bytes
	// which were compared here are the ones that run.
	Dir, Binary, SHA256 string
	// ManifestSHA256 stands for the whole pack.
	ManifestSHA256 string

	lock *os.File // of Dir
}

// Is says whether path looks like a pack: a folder with a manifest, or a tar,
// which is one though somebody has made it executable.
func Is(path string) bool {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return false
	case info.IsDir():
		inside, err := os.Lstat(filepath.Join(path, manifestName))
		return err == nil && inside.Mode().IsRegular()
	case !info.Mode().IsRegular():
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	magic := make([]byte, len(tarMagic))
	_, err = file.ReadAt(magic, tarMagicAt)
	return err == nil && string(magic) == tarMagic
}

// Where every tar of POSIX 1988 and later says that it is one.
const (
	tarMagic   = "ustar"
	tarMagicAt = 257
)

// Open copies the pack at path, a folder or a tar, to a private folder and
// compares it with its manifest. It refuses files that are missing, changed or
// not listed, links, paths that lead out of the pack, what is larger than a
// pack may be, and packs of another platform. An error is one line and leaves
// nothing behind.
func Open(path string) (*Opened, error) {
	opened, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the pack %s: %w", path, err)
	}
	return opened, nil
}

func open(path string) (*Opened, error) {
	from, err := openSource(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	removeStale(os.TempDir())
	dir, lock, err := makeCopyDir(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for its copy: %w: set TMPDIR to a folder that you may write to", err)
	}
	o := &Opened{Dir: dir, lock: lock}
	if err := o.fill(from); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// fill copies and compares.
func (o *Opened) fill(from source) error {
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	x := extraction{root: root, left: MaxBytes, found: map[string]copied{}}
	if err := from.each(x.take); err != nil {
		return err
	}
	if x.manifest == nil {
		return errNoManifest
	}
	m, err := decodeManifest(x.manifest)
	if err != nil {
		return err
	}
	if err := m.checkPlatform(); err != nil {
		return err
	}
	if err := x.compare(m); err != nil {
		return err
	}
	o.Manifest, o.ManifestSHA256 = *m, hash(x.manifest)
	o.Binary, o.SHA256 = filepath.Join(o.Dir, filepath.FromSlash(m.Binary)), x.found[m.Binary].sha256
	return nil
}

// Close removes the copy. Its lock goes last: nobody else is to remove it, too.
func (o *Opened) Close() error { return errors.Join(os.RemoveAll(o.Dir), o.lock.Close()) }

// copied is a file as it was copied.
type copied struct {
	bytes  int64
	sha256 string
}

// extraction is a copy under way.
type extraction struct {
	root     *os.Root
	left     int64 // bytes that may still come
	found    map[string]copied
	manifest []byte
}

// take copies one file. Its path may be anything.
func (x *extraction) take(name string, content io.Reader) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if name == manifestName {
		return x.takeManifest(content)
	}
	if len(x.found) >= MaxFiles {
		return fmt.Errorf("it has more than %d files", MaxFiles)
	}
	if _, twice := x.found[name]; twice {
		return fmt.Errorf("it has %q twice", name)
	}
	c, err := x.copy(name, content)
	if err != nil {
		return err
	}
	x.left -= c.bytes
	x.found[name] = c
	return nil
}

func (x *extraction) takeManifest(content io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(content, MaxManifestBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("cannot read %s: %w", manifestName, err)
	case len(raw) > MaxManifestBytes:
		return fmt.Errorf("%s has more than %d bytes", manifestName, MaxManifestBytes)
	case x.manifest != nil:
		return fmt.Errorf("it has %q twice", manifestName)
	}
	x.manifest = raw
	return nil
}

// copy writes a file into the private folder.
func (x *extraction) copy(name string, content io.Reader) (copied, error) {
	if err := x.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return copied{}, fmt.Errorf("cannot place %q: %w", name, text.Cause(err))
	}
	file, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return copied{}, fmt.Errorf("cannot place %q: %w", name, text.Cause(err))
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, h), io.LimitReader(content, x.left+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return copied{}, fmt.Errorf("cannot copy %q: %w", name, text.Cause(err))
	}
	if n > x.left {
		return copied{}, fmt.Errorf("its files have more than %d bytes together", int64(MaxBytes))
	}
	return copied{n, hex.EncodeToString(h.Sum(nil))}, nil
}

// compare holds what was copied to the manifest.
func (x *extraction) compare(m *Manifest) error {
	listed := map[string]bool{}
	for _, f := range m.Files {
		got, ok := x.found[f.Path]
		switch {
		case !ok:
			return fmt.Errorf("%q is missing", f.Path)
		case got.bytes != f.Bytes || got.sha256 != f.SHA256:
			return fmt.Errorf("%q was changed: it has %d bytes and sha256 %s, the manifest says %d and %s", f.Path, got.bytes, got.sha256, f.Bytes, f.SHA256)
		}
		listed[f.Path] = true
		if f.Executable {
			if err := x.root.Chmod(f.Path, 0o700); err != nil {
				return err
			}
		}
	}
	for name := range x.found {
		if !listed[name] {
			return fmt.Errorf("%q is not in the manifest", name)
		}
	}
	return nil
}

func hash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
