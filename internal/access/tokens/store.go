package tokens

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/atomicfile"
)

// FileName is that of the store in the state folder; its lock is beside it.
const FileName = "tokens.json"

const maxFileBytes = 16 << 20

// Store is a state folder's tokens. Several programs may use it at once, and its
// methods may be called from any goroutine: each sees at once what another has
// changed.
type Store struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	seen fs.FileInfo // of what held is
	held *file
}

// Open makes a Store of a folder, which is not looked at yet.
func Open(dir string) *Store { return &Store{path: filepath.Join(dir, FileName), now: time.Now} }

// Path is the file's.
func (s *Store) Path() string { return s.path }

// read gives what is on disk. The file is read only if it has changed since it was
// read last: each change puts another file there.
func (s *Store) read() (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Lstat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s.none()
	}
	if err == nil && s.seen != nil && os.SameFile(info, s.seen) && info.ModTime().Equal(s.seen.ModTime()) && info.Size() == s.seen.Size() {
		return s.held, nil
	}
	if err == nil {
		s.held, s.seen, err = load(s.path)
	}
	if err != nil {
		s.held, s.seen = nil, nil
		return nil, fmt.Errorf("cannot read the tokens: %w", err)
	}
	return s.held, nil
}

// none is what is read where there is no file. Tokens whose whole folder has gone are out of
// reach, but not removed.
func (s *Store) none() (*file, error) {
	if _, err := os.Stat(s.Dir()); err != nil && s.seen != nil {
		return nil, fmt.Errorf("cannot read the tokens: put their folder back: %w", err)
	}
	return &file{Version: version}, nil
}

func load(path string) (*file, fs.FileInfo, error) {
	held := &file{}
	info, err := readPrivate(path, maxFileBytes, held)
	if errors.Is(err, errDamaged) {
		return nil, nil, fmt.Errorf("%w: restore it, or remove it to revoke all tokens", err)
	}
	if err != nil {
		return nil, nil, err
	}
	if held.Version != version {
		return nil, nil, fmt.Errorf("%s has version %d, and this toolhost knows %d: use the newer toolhost", path, held.Version, version)
	}
	return held, info, nil
}

var errDamaged = errors.New("is damaged")

// ReadPrivate reads JSON that only the daemon's user may have written.
func ReadPrivate(path string, most int64, into any) error {
	_, err := readPrivate(path, most, into)
	return err
}

func readPrivate(path string, most int64, into any) (fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := Private(f, folderOwner(path)...); err != nil {
		return nil, fmt.Errorf("%w: remove it, and make anew what it held", err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, into); err != nil || int64(len(raw)) > most {
		return nil, fmt.Errorf("%s %w", path, errDamaged)
	}
	return info, nil
}

// Private says why others could have read or changed a file: then nothing in it is
// a secret, or to be believed. It may belong to root, to this process's user, and to owners.
func Private(f *os.File, owners ...uint32) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", f.Name())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s has mode %04o, so others may have read it", f.Name(), info.Mode().Perm())
	case owner != 0 && owner != uint32(os.Geteuid()) && !slices.Contains(owners, owner):
		return fmt.Errorf("%s belongs to uid %d", f.Name(), owner)
	}
	return nil
}

// folderOwner is who owns a file's folder, where root works on files of theirs.
func folderOwner(path string) []uint32 {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	return []uint32{info.Sys().(*syscall.Stat_t).Uid}
}

// change has one program at a time change the file. The old one stays until the new
// one is whole.
func (s *Store) change(f func(*file) error) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the tokens: %w", err)
	}
	lock, err := os.OpenFile(s.path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("cannot lock the tokens: %w", err)
	}
	defer lock.Close()
	own(lock)
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("cannot lock the tokens: %w", err)
	}
	held, err := s.read()
	if err != nil {
		return err
	}
	next := held.clone()
	next.tidy(s.now())
	if err := f(next); err != nil {
		return err
	}
	if err := WritePrivate(s.path, next); err != nil {
		return fmt.Errorf("cannot write the tokens: %w", err)
	}
	return nil
}

// WritePrivate puts JSON in the place of a file, whole: only the daemon's user can read
// it. What root writes is the folder's owner's.
func WritePrivate(path string, content any) error {
	raw, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		return err
	}
	var o atomicfile.Options
	if os.Geteuid() == 0 {
		if o.Like, err = os.Stat(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return atomicfile.Write(path, append(raw, '\n'), o)
}

// own gives a file that root makes to the owner of its folder, whose daemon reads it.
func own(f *os.File) {
	info, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil || os.Geteuid() != 0 {
		return
	}
	stat := info.Sys().(*syscall.Stat_t)
	_ = f.Chown(int(stat.Uid), int(stat.Gid))
}

// Spec is a token to be made.
type Spec struct {
	Name  string
	Roles []access.Role
	Tools []string
	// Life is how long it is valid; 0 is for ever.
	Life time.Duration
	// By is who makes it.
	By string
}

// Create makes a token. secret is the token itself, which is kept nowhere.
func (s *Store) Create(spec Spec) (secret string, made Token, err error) {
	if err := CheckName(spec.Name); err != nil {
		return "", Token{}, err
	}
	secret, id := generate()
	now := s.now().UTC()
	made = Token{ID: id, Name: spec.Name, Roles: spec.Roles, Tools: spec.Tools, Hash: HashOf(secret), Created: now, By: spec.By}
	if spec.Life > 0 {
		made.Expires = now.Add(spec.Life)
	}
	err = s.change(func(f *file) error {
		if slices.ContainsFunc(f.Tokens, func(t Token) bool { return t.Name == spec.Name && t.Valid(now) }) {
			return fmt.Errorf("there is a token %s already: revoke it first, or choose another name", spec.Name)
		}
		if f.count(func(t Token) bool { return t.Session == nil && t.Valid(now) }) >= maxTokens {
			return fmt.Errorf("there are %d tokens: revoke some", maxTokens)
		}
		f.Tokens = append(f.Tokens, made)
		return nil
	})
	return secret, made, err
}

// List gives all tokens, also those that are over, but no sessions.
func (s *Store) List() ([]Token, error) {
	f, err := s.read()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(f.Tokens), func(t Token) bool { return t.Session != nil }), nil
}

// ErrUnknown is why a token cannot be revoked.
var ErrUnknown = errors.New("no such token is valid")

// Revoke ends a token by its name or id, and the sessions that it has let in. Of several of
// the name it is the one that is valid.
func (s *Store) Revoke(name, by string) (revoked Token, err error) {
	err = s.change(func(f *file) error {
		named := func(t Token) bool {
			return t.Session == nil && t.Revoked.IsZero() && (t.ID == name || t.Name == name)
		}
		i := slices.IndexFunc(f.Tokens, func(t Token) bool { return named(t) && t.Valid(s.now()) })
		if i < 0 {
			i = slices.IndexFunc(f.Tokens, named)
		}
		if i < 0 {
			return fmt.Errorf("%q: %w: see toolhost token list", name, ErrUnknown)
		}
		f.Tokens[i].Revoked, f.Tokens[i].RevokedBy = s.now().UTC(), by
		revoked = f.Tokens[i]
		f.Tokens = slices.DeleteFunc(f.Tokens, func(t Token) bool { return t.Session != nil && t.Session.Token == revoked.ID })
		return nil
	})
	return revoked, err
}

// Find finds a token, or session, by what a client bears. It takes the same time for
// every wrong one of the right form. An error says that nobody can be let in.
func (s *Store) Find(secret string) (found Token, ok bool, err error) {
	f, err := s.read()
	if err != nil {
		return Token{}, false, err
	}
	id, formed := IDOf(secret)
	if !formed {
		return Token{}, false, nil
	}
	for _, t := range f.Tokens {
		if t.ID == id {
			found = t
		}
	}
	if !found.is(secret) || !found.Valid(s.now()) {
		return Token{}, false, nil
	}
	return found, true, nil
}

// ByID finds a valid token, but not a session.
func (s *Store) ByID(id string) (Token, bool) {
	f, err := s.read()
	if err != nil {
		return Token{}, false
	}
	for _, t := range f.Tokens {
		if t.ID == id && t.Session == nil && t.Valid(s.now()) {
			return t, true
		}
	}
	return Token{}, false
}

// Login begins a session of a browser. The oldest one ends where there are too many, of
// its own first.
func (s *Store) Login(of Holder, life time.Duration, by string) (secret string, expires time.Time, err error) {
	secret, id := generate()
	now := s.now().UTC()
	expires = now.Add(life)
	err = s.change(func(f *file) error {
		f.makeRoom(maxOwnSessions, func(t Token) bool { return t.Session != nil && t.By == by })
		f.makeRoom(maxSessions, func(t Token) bool { return t.Session != nil })
		f.Tokens = append(f.Tokens, Token{ID: id, Hash: HashOf(secret), Created: now, Expires: expires, By: by, Session: &of})
		return nil
	})
	return secret, expires, err
}

// Logout ends a session.
func (s *Store) Logout(id string) error {
	return s.change(func(f *file) error {
		f.Tokens = slices.DeleteFunc(f.Tokens, func(t Token) bool { return t.Session != nil && t.ID == id })
		return nil
	})
}

// Holds says whether a token or session may still be used, by its id.
func (s *Store) Holds(id string) bool {
	f, err := s.read()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(f.Tokens, func(t Token) bool {
		return t.ID == id && t.Valid(s.now()) && (t.Session == nil || t.Session.Token == "" || s.has(f, t.Session.Token))
	})
}

// has says whether there is a valid token of an id.
func (s *Store) has(f *file, id string) bool {
	return slices.ContainsFunc(f.Tokens, func(t Token) bool { return t.ID == id && t.Session == nil && t.Valid(s.now()) })
}

// Dir is the state folder.
func (s *Store) Dir() string { return filepath.Dir(s.path) }
