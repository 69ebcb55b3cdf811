// Package cause shortens errors whose path and system call the message names
// already.
package cause

import (
	"errors"
	"io/fs"
	"os"
)

// Of is err without its call and path.
func Of(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	if callErr, ok := errors.AsType[*os.SyscallError](err); ok {
		return callErr.Err
	}
	return err
}
