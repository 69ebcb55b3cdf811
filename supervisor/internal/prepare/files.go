package prepare

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox/export"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
)

// openFilesTo opens the folder for the call's files before the call runs: one
// that may write there could else lead it elsewhere.
func (n *preparation) openFilesTo() (err error) {
	to := n.Request.FilesTo
	if to == "" {
		return nil
	}
	if !n.Policy.Confines() {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, errors.New("files are taken out of a sandbox's workspace only: leave out the folder for them, or the tier none"))
	}
	if to, err = filepath.Abs(to); err == nil && n.Policy.MayWrite(to) {
		err = fmt.Errorf("cannot take files to %s: the call may write there itself; choose another folder", to)
	}
	if err == nil {
		n.FilesTo, err = export.Open(to)
	}
	if err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonPolicy, err)
	}
	return nil
}
