package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// trust refuses a file that others could have written: one that belongs to
// neither the user nor root, or that others may write to, or that they could
// put in the place of another because the same is true of a folder on the way
// to it. For root, the file's group counts among the others. info is of the file as
// it was opened. The answer is the remedy's phrase, or empty.
func (m Machine) trust(absolute string, info fs.FileInfo) (wrong string) {
	if wrong := m.trustOne(info, absolute); wrong != "" {
		return wrong
	}
	return m.trustWay(absolute, maxLinks)
}

// maxLinks bounds the symbolic links on the way to a file, as the kernel does.
const maxLinks = 40

// trustWay looks at each folder from the root on, and follows links.
func (m Machine) trustWay(absolute string, links int) string {
	parts := strings.Split(inFiles(absolute), "/")
	here := "/"
	for i, part := range parts {
		folder, err := m.stat(here)
		if err != nil {
			return fmt.Sprintf("cannot be trusted, since the folder %s cannot be looked at: %v", here, reason(err))
		}
		if wrong := m.trustOne(folder, here); wrong != "" {
			return wrong
		}
		next := path.Join(here, part)
		info, err := fs.Lstat(m.Files, cmp.Or(inFiles(next), "."))
		if err != nil {
			return fmt.Sprintf("cannot be trusted, since %s cannot be looked at: %v", next, reason(err))
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return m.trustLink(here, next, parts[i+1:], links)
		}
		here = next
	}
	return ""
}

func (m Machine) trustLink(folder, link string, rest []string, links int) string {
	target, err := fs.ReadLink(m.Files, inFiles(link))
	if err != nil || links == 0 {
		return fmt.Sprintf("cannot be trusted, since the link %s cannot be followed: name the file itself", link)
	}
	if !path.IsAbs(target) {
		target = path.Join(folder, target)
	}
	return m.trustWay(path.Join(append([]string{target}, rest...)...), links-1)
}

// trustOne judges one file or folder. In a folder with the sticky bit, such as
// /tmp, others can add files but not replace ours.
func (m Machine) trustOne(info fs.FileInfo, name string) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "cannot be trusted, since its owner is not known"
	}
	others := fs.FileMode(0o002)
	if m.UID == 0 {
		others = 0o022
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0
	switch {
	case stat.Uid != 0 && int(stat.Uid) != m.UID:
		return fmt.Sprintf("cannot be trusted, since %s belongs to uid %d: chown it to uid %d or root", name, stat.Uid, m.UID)
	case info.Mode().Perm()&others != 0 && !sticky:
		return fmt.Sprintf("cannot be trusted, since others may write to %s (mode %#o): chmod go-w %s", name, info.Mode().Perm(), name)
	}
	return ""
}
