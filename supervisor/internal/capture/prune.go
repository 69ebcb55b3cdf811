package capture

import (
	"io/fs"
	"slices"

	"github.com/toolhost/toolhost/internal/lazy"
)

// minCounted is what the smallest file counts as: it bounds how many there are.
const minCounted = 1 << 20

// spillName is that of a call's file: others in the folder are somebody's own.
var spillName = lazy.Regexp(`^[A-Z2-7]{26}\.std(out|err)$`)

// prune removes the oldest files until the rest is within the total. What cannot be
// removed now is tried again after the next call.
func (s *Spills) prune() {
	files, sum := s.files()
	for _, file := range files {
		if sum <= s.total {
			return
		}
		if s.root.Remove(file.Name()) == nil {
			sum -= counted(file)
		}
	}
}

// files are those of calls, the oldest first, and what they count as.
func (s *Spills) files() (list []fs.FileInfo, sum int64) {
	entries, _ := fs.ReadDir(s.root.FS(), ".")
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && spillName().MatchString(entry.Name()) {
			list, sum = append(list, info), sum+counted(info)
		}
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	return list, sum
}

func counted(file fs.FileInfo) int64 { return max(file.Size(), minCounted) }
