package main

import (
	"context"
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
// one is counted. It finds no more once ctx has ended.
func find(ctx context.Context, paths []string) (*found, error) {
	f := &found{}
	for _, path := range paths {
		// A path that was named is followed if it is a link, others are not.
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("cannot count: %w", err)
		}
		err = filepath.WalkDir(resolved, func(path string, entry fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return filepath.SkipAll
			}
			f.visit(path, entry, err)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot count: %w", err)
		}
	}
	return f, nil
}

func (f *found) visit(path string, entry fs.DirEntry, err error) {
	switch {
	case err != nil:
		f.fail(err)
		return
	case !entry.Type().IsRegular():
		return
	}
	info, err := os.Lstat(path)
	if err != nil {
		f.fail(err)
		return
	}
	f.paths = append(f.paths, path)
	f.bytes += info.Size()
}

func (f *found) fail(err error) {
	f.errors++
	if len(f.failures) < maxLogged {
		f.failures = append(f.failures, err)
	}
}
