package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/atomicfile"
	"github.com/toolhost/toolhost/turn"
)

// approvalsName is the file in the state folder with what was approved for identities.
const approvalsName = "approvals.json"

const maxApprovalsBytes = 64 << 20

// approvals opens the approvals that an earlier daemon has left, and keeps new ones beside
// them.
func (d *daemon) approvals() (*turn.Approvals, error) {
	host, err := json.Marshal(d.options.Loaded.Config.Sandbox)
	if err != nil {
		return nil, fmt.Errorf("bug: cannot write the policy: %w", err)
	}
	o := turn.ApprovalOptions{Stands: d.stands, Host: string(host)}
	if d.options.State == "" {
		return turn.NewApprovals(o), nil
	}
	path := filepath.Join(d.options.State, approvalsName)
	o.Save = func(list []turn.KeptApproval) error {
		if len(list) == 0 {
			return atomicfile.Remove(path) // which a full disk allows
		}
		return tokens.WritePrivate(path, list)
	}
	switch err := tokens.ReadPrivate(path, maxApprovalsBytes, &o.Kept); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("cannot read the approvals: %w; remove %s to revoke all of them", err, path)
	}
	return turn.NewApprovals(o), nil
}

// stands reports whether an approval is still valid: it ends with the token it was given to,
// even if another token has the same name, or is in the same file. The error is why the tokens
// cannot be read.
func (d *daemon) stands(a api.Approval) (bool, error) {
	if a.Owner == "token" {
		return d.standsByFile(a)
	}
	name, of := strings.CutPrefix(a.Owner, "token ")
	if !of || d.tokens == nil {
		return true, nil
	}
	list, err := d.tokens.List()
	if err != nil {
		return false, err
	}
	for _, t := range list {
		if t.Name == name && t.Valid(time.Now()) {
			return t.Created.Before(a.At), nil
		}
	}
	return false, nil
}

// standsByFile is stands for an owner who has the token file.
func (d *daemon) standsByFile(a api.Approval) (bool, error) {
	made, err := os.Lstat(filepath.Join(d.options.State, TokenName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && made.ModTime().Before(a.At), err
}
