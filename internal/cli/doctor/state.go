package doctor

import (
	"fmt"
	"syscall"

	"github.com/docker/go-units"

	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/journal/state"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/tools/config"
)

// leastStateBytes is the room below which a journal will soon be full.
const leastStateBytes = 64 << 20

// checkState looks at the folder in which turns and the daemon keep their journals.
func checkState(loaded *config.Loaded) Finding {
	dir, err := state.Folder(loaded.State)
	switch {
	case err != nil:
		return Warn("state", err.Error(), "turns and the daemon need a folder, or --state none")
	case dir == "":
		return OK("state", "no journal is kept")
	}
	return checkStateIn(dir)
}

func checkStateIn(dir string) Finding {
	if err := journal.CheckDir(dir); err != nil {
		return Warn("state", terminal.OneLine("turns and the daemon cannot keep a journal: "+err.Error()), "see to that folder, or name another one with --state or $TOOLHOST_STATE")
	}
	left, known := roomIn(dir)
	if known && left < leastStateBytes {
		return Warn("state", terminal.OneLine(fmt.Sprintf("%s left for journals in %s: without room calls are refused", units.BytesSize(float64(left)), dir)), "make room there, or name another folder with --state or $TOOLHOST_STATE")
	}
	return OK("state", terminal.OneLine("journals can be kept in "+dir))
}

// roomIn is what its user may still write in a folder; false for one that is not there yet.
func roomIn(dir string) (bytes int64, known bool) {
	var fs syscall.Statfs_t
	err := syscall.Statfs(dir, &fs)
	return int64(fs.Bavail) * fs.Bsize, err == nil
}
