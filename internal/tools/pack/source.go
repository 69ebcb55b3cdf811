package pack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/internal/text"
)

// source hands over each file of a pack, in any order.
type source interface {
	// each calls take with every file. name is as found: the taker checks it.
	each(take func(name string, content io.Reader) error) error
	io.Closer
}

// tarSource is a plain tar. Links and special files have no place in it;
// folders are made by the files in them.
type tarSource struct{ file *os.File }

func (s tarSource) Close() error { return s.file.Close() }

func (s tarSource) each(take func(string, io.Reader) error) error {
	// The bound is for headers, whose blocks count nowhere else.
	reader := tar.NewReader(io.LimitReader(s.file, maxTarBytes))
	for {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("it is not a whole tar: %w", err)
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg || sparse(header):
			return fmt.Errorf("%q is not a plain file: links and special files are not allowed in a pack", header.Name)
		}
		if err := take(trimDot(header.Name), reader); err != nil {
			return err
		}
	}
}

// maxTarBytes allows for some blocks of header with each file.
const maxTarBytes = MaxBytes + MaxManifestBytes + MaxFiles*8<<10

// trimDot: tar(1) writes ./name when it is given a folder.
func trimDot(name string) string {
	if len(name) > 2 && name[:2] == "./" {
		return name[2:]
	}
	return name
}

// dirSource is a folder. No link in it is followed.
type dirSource struct{ root *os.Root }

func (s dirSource) Close() error { return s.root.Close() }

func (s dirSource) each(take func(string, io.Reader) error) error {
	files := 0
	return fs.WalkDir(s.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%q is not a plain file: links and special files are not allowed in a pack", name)
		}
		if files++; files > MaxFiles+1 {
			return fmt.Errorf("it has more than %d files", MaxFiles)
		}
		file, err := openRegular(s.root, name)
		if err != nil {
			return err
		}
		defer file.Close()
		return take(path.Clean(filepath.ToSlash(name)), file)
	})
}

// openRegular never waits for a FIFO that has taken a file's place.
func openRegular(root *os.Root, name string) (*os.File, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, errors.Join(fmt.Errorf("%q is not a plain file", name), err)
	}
	return file, nil
}

// openSource finds out what kind of pack is at name.
func openSource(name string) (source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, text.Cause(err)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, text.Cause(err)
		}
		return dirSource{root}, nil
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is neither a folder nor a file")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, text.Cause(err)
	}
	return tarSource{file}, nil
}

// sparse files unfold to more than the tar has.
func sparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}
