package sandbox

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// maxJudged bounds the policies that a Guard remembers.
const maxJudged = 256

// judged is what a policy with paths was found to be. It holds for as long as the
// host's mounts, and all that it was judged by, are the same.
type judged struct {
	policy Policy // as it was given
	found  Resolved
	epoch  uint64 // of the mounts
	marks  []mark
	own    *judgedOwn // as it was applied last; guarded by Guard.mu
}

// judgedOwn is what of Own is masked in a policy, which makes its key.
type judgedOwn struct {
	own   Own
	marks []mark
	masks []mask
	key   string // of the policy with these masks
}

// mark is what a path led to.
type mark struct {
	path   string
	absent bool
	plain  bool // no link was on the way
	id     fileID
	mode   uint32
	uid    uint32
	gid    uint32
}

// marked is the mark of something that was opened by the path.
func marked(path string, o *opened) mark {
	return mark{path: path, plain: path == o.path, id: o.id, mode: o.stat.Mode, uid: o.stat.Uid, gid: o.stat.Gid}
}

// holds says whether the path leads to the same thing, by the same way.
func (m mark) holds() bool {
	at, path, flags := unix.AT_FDCWD, m.path, 0
	if m.plain {
		fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return false
		}
		defer unix.Close(fd)
		at, path, flags = fd, "", unix.AT_EMPTY_PATH
	}
	var x unix.Statx_t
	err := unix.Statx(at, path, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME|unix.STATX_MNT_ID, &x)
	if m.absent {
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
	}
	is := fileID{device: unix.Mkdev(x.Dev_major, x.Dev_minor), inode: x.Ino, mount: x.Mnt_id, born: x.Btime}
	return err == nil && is == m.id && uint32(x.Mode) == m.mode && x.Uid == m.uid && x.Gid == m.gid
}

// distinct keeps each mark once, for each is looked at in every call.
func distinct(marks []mark) (kept []mark) {
	seen := map[mark]bool{}
	for _, m := range marks {
		if !seen[m] {
			seen[m] = true
			kept = append(kept, m)
		}
	}
	return kept
}

func hold(marks []mark) bool {
	return !slices.ContainsFunc(marks, func(m mark) bool { return !m.holds() })
}

// Resolve is like [Policy.Resolve], for hosts that have many calls with the same policy. It
// does not check a policy again while the files that it depends on are unchanged, and opens
// paths only when a call starts. The start opens what was checked, or fails.
func (g *Guard) Resolve(p Policy) (Resolved, error) {
	epoch, watched := g.mounts.now()
	if watched && p.named() > 0 {
		if r, ok := g.recall(p, epoch); ok {
			return r, nil
		}
	}
	r, err := p.Resolve()
	r.epoch = epoch
	if err == nil && watched && r.held != nil {
		g.remember(p, r, epoch)
	}
	return r, err
}

func (p Policy) named() int { return len(p.Read) + len(p.Write) + len(p.Workspace) }

func (g *Guard) recall(p Policy, epoch uint64) (Resolved, bool) {
	g.mu.Lock()
	i := slices.IndexFunc(g.judged, func(j *judged) bool { return j.policy.equal(p) })
	if i < 0 {
		g.mu.Unlock()
		return Resolved{}, false
	}
	known := g.judged[i]
	g.mu.Unlock()
	if known.epoch != epoch || !hold(known.marks) {
		return Resolved{}, false
	}
	r := known.found
	r.grants = slices.Clone(r.grants)
	r.held = &held{files: r.held.files, mounts: r.held.mounts, known: known, shut: true}
	return r, true
}

func (p Policy) equal(q Policy) bool {
	return slices.Equal(p.Read, q.Read) && slices.Equal(p.Write, q.Write) && p.Workspace == q.Workspace && reflect.DeepEqual(p, q)
}

// remember keeps what was found, unless links were on the way: who may change those
// was judged, too.
func (g *Guard) remember(p Policy, r Resolved, epoch uint64) {
	known := &judged{policy: p.clone(), found: r, epoch: epoch, marks: slices.Clone(r.held.marks)}
	for _, path := range slices.Concat(p.Read, p.Write, []string{p.Workspace}) {
		if path == "" {
			continue
		}
		o := r.held.get(path) // only where it is its own real path
		if o == nil {
			return
		}
		known.marks = append(known.marks, marked(path, o))
	}
	known.found.grants = slices.Clone(r.grants)
	known.found.held = &held{files: map[string]*opened{}, mounts: r.held.mounts}
	for path, o := range r.held.files {
		closed := o.copy()
		closed.file = nil
		known.found.held.files[path] = closed
	}
	r.held.known = known
	g.mu.Lock()
	defer g.mu.Unlock()
	g.judged = slices.DeleteFunc(g.judged, func(j *judged) bool { return j.policy.equal(p) })
	if len(g.judged) >= maxJudged {
		g.judged = slices.Delete(g.judged, 0, 1)
	}
	g.judged = append(g.judged, known)
}

func (p Policy) clone() Policy {
	p.Read, p.Write, p.Require, p.Allow = slices.Clone(p.Read), slices.Clone(p.Write), slices.Clone(p.Require), slices.Clone(p.Allow)
	p.Grants = slices.Clone(p.Grants)
	for i := range p.Grants {
		p.Grants[i].Ports = slices.Clone(p.Grants[i].Ports)
	}
	return p
}

// masksOf are those of a policy that own was applied to before, if nothing has
// changed since.
func (g *Guard) masksOf(r *Resolved, own Own) ([]mask, bool) {
	known := r.held.known
	if known == nil {
		return nil, false
	}
	g.mu.Lock()
	last := known.own
	g.mu.Unlock()
	if last == nil || !last.own.equal(own) || !hold(last.marks) {
		return nil, false
	}
	r.held.own = last
	return slices.Clone(last.masks), true
}

func (o Own) equal(other Own) bool {
	return slices.Equal(o.Hidden, other.Hidden) && slices.Equal(o.Fixed, other.Fixed) && slices.Equal(o.Made, other.Made) && o.Data == other.Data
}

// rememberOwn keeps the masks that the policy has got.
func (g *Guard) rememberOwn(r *Resolved, own Own, marks []mark) {
	if r.held.known == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	own.Hidden, own.Fixed, own.Made = slices.Clone(own.Hidden), slices.Clone(own.Fixed), slices.Clone(own.Made)
	r.held.known.own = &judgedOwn{own: own, marks: marks, masks: slices.Clone(r.masks), key: r.key()}
}

// reopen opens again what was judged; h is locked.
func (h *held) reopen() error {
	files := maps.Clone(h.files)
	for path, o := range files {
		now, err := openOnce(path, true)
		if err == nil && now.id != o.id {
			_ = now.file.Close()
			err = unix.ESTALE
		}
		if err != nil {
			for _, opened := range files {
				if opened.file != nil {
					_ = opened.file.Close()
				}
			}
			return stageError(path, err)
		}
		files[path] = now
	}
	h.files, h.shut = files, false
	return nil
}

// mountWatch counts the changes of the mounts that this process sees.
type mountWatch struct {
	mu    sync.Mutex
	file  *os.File // nil before the first look
	epoch uint64
}

// now is how many changes there were; false if that is not known. The kernel tells
// each one once to each who has the table open (proc_pid_mountinfo(5)).
func (w *mountWatch) now() (epoch uint64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, false
		}
		w.file = os.NewFile(uintptr(fd), "mountinfo")
		w.epoch++
	}
	poll := []unix.PollFd{{Fd: int32(w.file.Fd()), Events: unix.POLLPRI}}
	n, err := unix.Poll(poll, 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return 0, false
	}
	if n != 0 || err != nil {
		w.epoch++
	}
	return w.epoch, true
}

func (w *mountWatch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}
