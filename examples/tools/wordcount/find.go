package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLogged is how many errors are logged; all are counted.
const maxLogged = 20

// found are the regular files at and below the paths to count.
type found struct {
	paths    []string
	bytes    int64
	errors   int64
	failures []error // the first maxLogged
}

// find fails if one of the paths itself is missing; what cannot be read below
// one is counted.
func find(paths []string) (*found, error) {
	f := &found{}
	for _, path := range paths {
		// A path that was named is followed if it is a link, others are not.
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("cannot count: %w", err)
		}
		if err := filepath.WalkDir(resolved, f.visit); err != nil {
			return nil, fmt.Errorf("cannot count: %w", err)
		}
	}
	return f, nil
}

func (f *found) visit(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		f.fail(err)
		return nil
	}
	if !entry.Type().IsRegular() {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		f.fail(err)
		return nil
	}
	f.paths = append(f.paths, path)
	f.bytes += info.Size()
	return nil
}

func (f *found) fail(err error) {
	f.errors++
	if len(f.failures) < maxLogged {
		f.failures = append(f.failures, err)
	}
}
