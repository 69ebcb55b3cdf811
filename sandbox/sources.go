package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sandbox/internal/lookup"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// sources are the files that the plan's trees are cloned from: those that were
// judged, and the call's programs. done must be called when they have been sent.
func (p *Plan) sources() (files []*os.File, done func(), err error) {
	finish, err := p.held.use()
	if err != nil {
		return nil, nil, err
	}
	var own []*os.File
	done = func() {
		for _, file := range own {
			_ = file.Close()
		}
		finish()
	}
	for i := range p.stage {
		source := p.stage[i].Source
		if o := p.held.get(source); o != nil {
			files = append(files, o.file)
			continue
		}
		file, err := lookup.Open(source, false)
		if err != nil {
			done()
			return nil, nil, stageError(source, err)
		}
		own, files = append(own, file), append(files, file)
	}
	return files, done, nil
}

func stageError(source string, err error) error {
	return &SetupError{Step: wire.StepStage + source, Err: err}
}

// explainTree names the remedy for what went wrong with a tree of the host's;
// mapping is the step of mapping its owner.
func (s Spec) explainTree(path string, mapping bool, err error) error {
	data := path == s.Plan.receipt.Data
	cannot, instead := "cannot show "+path+" to the call", "grant a path"
	if data {
		cannot, instead = "cannot keep the workspace in "+path, "choose a folder"
	}
	if mapping && errors.Is(err, unix.EINVAL) {
		whose := "its file system"
		if below := s.Plan.held.namedBelow(path); below != "" {
			whose += ", or one of those mounted in it (" + below + "),"
			instead += " beside these, or"
		}
		return fmt.Errorf("%s: %s cannot map owners (id-mapped mounts): %w; %s on another one, such as ext4, xfs or btrfs", cannot, whose, err, instead)
	}
	if !mapping && (errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ENOENT)) {
		err = nowAt(path, data)
	}
	switch {
	case !mapping && errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%s: it has become a link since it was resolved", cannot)
	case !mapping && data && (errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EPERM)):
		return fmt.Errorf("%s: it is no longer a folder of this user's: %w", cannot, err)
	case !mapping && errors.Is(err, unix.ESTALE):
		return fmt.Errorf("%s: it has been replaced since it was resolved", cannot)
	}
	return fmt.Errorf("%s: %w", cannot, err)
}

// maxNamedMounts bounds the mounts that an error names.
const maxNamedMounts = 8

// namedBelow names what was mounted in a folder, and the kind of each, for a message.
func (h *held) namedBelow(path string) string {
	var names []string
	for _, m := range h.mountsBelow(path) {
		names = append(names, m.at+": "+m.typ)
	}
	return strings.Join(names[:min(len(names), maxNamedMounts)], ", ")
}

// nowAt says what has come in the place of something that is gone. It is for the
// message alone: nothing of it is shown to a call.
func nowAt(path string, data bool) error {
	var st unix.Stat_t
	if gone := unix.Lstat(path, &st); gone != nil {
		return gone
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		return unix.ELOOP
	case data && kind != unix.S_IFDIR:
		return unix.ENOTDIR
	case data && int(st.Uid) != os.Geteuid():
		return unix.EPERM
	}
	return unix.ESTALE
}
