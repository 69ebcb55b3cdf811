package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// outerRules finds the repository that root lies in, and the rules of its
// folders above root, since git applies those too. below is root's slash path
// in the repository; outside of one root itself is the top.
func outerRules(root string, complain func(error)) (below string, outer *rules) {
	// Where root is a link, the folders above are those of its target.
	resolved, err := filepath.EvalSymlinks(root)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		complain(err)
		return ".", nil
	}
	top := repository(resolved)
	below, err = filepath.Rel(top, resolved)
	if err != nil {
		complain(err)
		return ".", nil
	}
	for name := "."; name != below; name = next(name, below) {
		if outer, err = outer.in(filepath.Join(top, name), name); err != nil {
			complain(err)
		}
	}
	return below, outer
}

// repository is the nearest folder from dir upwards that holds .git, else dir.
func repository(dir string) string {
	for top := dir; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return top
		}
		if top == filepath.Dir(top) {
			return dir
		}
	}
}

// next is one folder further down from name on the way to below.
func next(name, below string) string {
	rest := below
	if name != "." {
		rest = strings.TrimPrefix(below, name+"/")
	}
	first, _, _ := strings.Cut(rest, "/")
	return path.Join(name, first)
}
