package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolhost/toolhost/internal/text"
)

// chunkBytes is what is read, hashed and written at a time.
const chunkBytes = 1 << 20

// take copies the file at path, which had this id a moment ago.
func (s *Store) take(path string, id identity) (Entry, error) {
	if onDisk(id.size) > s.maxBytes {
		return Entry{}, fmt.Errorf("cannot take the tool %s of %d bytes: the store %s may have %d; raise that bound",
			path, id.size, s.dir, s.maxBytes)
	}
	id.settle(s.now())
	// Without O_NONBLOCK, a FIFO in place of the file would hang us.
	source, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Entry{}, fmt.Errorf("cannot read the tool %s: %w", path, text.Cause(err))
	}
	defer source.Close()
	begun := s.now()
	if err := s.unchanged(source, id); err != nil {
		return Entry{}, err
	}
	entry, err := s.copy(source, id)
	if err == nil && id.settled(begun) {
		s.record(id, entry.SHA256)
	}
	return entry, err
}

func (s *Store) unchanged(source *os.File, id identity) error {
	info, err := source.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("cannot look at the tool %s: %w", source.Name(), text.Cause(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("the tool %s is not a regular file: name an executable", source.Name())
	case identify(info) != id:
		return errChanged
	}
	return nil
}

func (s *Store) copy(source *os.File, id identity) (Entry, error) {
	temp, err := s.newTemp()
	if err != nil {
		return Entry{}, err
	}
	defer os.Remove(temp) // unless it was published
	hash, size, err := s.fill(temp, io.LimitReader(source, id.size+1), source.Name())
	if err != nil {
		return Entry{}, err
	}
	s.copied()
	if err := s.unchanged(source, id); err != nil {
		return Entry{}, err
	}
	if size != id.size {
		return Entry{}, errChanged
	}
	entry := s.entry(hash)
	return entry, s.publish(temp, entry, size)
}

// fill writes what source gives to the file temp, and hashes just that.
func (s *Store) fill(temp string, source io.Reader, name string) (hash string, size int64, err error) {
	h := sha256.New()
	buf := make([]byte, chunkBytes)
	for {
		n, err := io.ReadFull(source, buf)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return "", 0, fmt.Errorf("cannot read the tool %s: %w", name, text.Cause(err))
		}
		h.Write(buf[:n])
		if err := write(temp, os.O_APPEND, buf[:n]); err != nil {
			return "", 0, s.explain("write", err)
		}
		size += int64(n)
		if end {
			return hex.EncodeToString(h.Sum(nil)), size, nil
		}
	}
}

// newTemp makes an empty file. Its name is of this process and random, but the
// flag O_EXCL is what counts.
func (s *Store) newTemp() (string, error) {
	for {
		temp := s.tempPath()
		err := write(temp, os.O_CREATE|os.O_EXCL, nil)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		return temp, s.explain("make a file", err)
	}
}

func (s *Store) tempPath() string {
	return filepath.Join(s.dir, fmt.Sprintf("%s%d-%s", tempPrefix, os.Getpid(), rand.Text()))
}

// write opens a file for writing, writes and closes it, all while this process
// forks no child.
//
// A child has every file of its parent open from its fork until it executes,
// whatever O_CLOEXEC says, and the kernel executes no file that anyone has
// open for writing (ETXTBSY, golang.org/issue/22315): a copy could not be
// executed until the last such child has. So no fork may see a copy open for
// writing. The standard library forks under the write lock of ForkLock. To
// hold its read lock for the whole copying would be enough, but would stop all
// starts meanwhile, for ever if the source is a file system that hangs; so it
// is held for one chunk at a time, which is written to our own folder only.
//
// Closing under the lock, after a fork outside it, would not be enough: a
// child in a new user namespace is on its own before it executes, and any
// other one closes its files a moment after the parent continues.
func write(path string, flags int, data []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// publish gives a complete copy its name, unless there is one already.
func (s *Store) publish(temp string, entry Entry, size int64) error {
	if s.use(entry, size) {
		return nil
	}
	if err := s.finish(temp); err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if s.touch(entry, size) {
		return nil // another process was faster
	}
	if err := s.makeRoom(entry, size); err != nil {
		return err
	}
	return s.explain("name a file", os.Rename(temp, entry.Path))
}

// finish makes a copy what it will be for ever. It waits until the bytes are
// on disk, because the name and the length alone may survive a power cut, and
// then the file would be executed with zeros in it, under a hash that is not
// its own. fsync(2) needs no file that is open for writing: see write.
func (s *Store) finish(temp string) error {
	file, err := os.OpenFile(temp, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return s.explain("read a file", err)
	}
	defer file.Close()
	if err := file.Chmod(entryMode); err != nil {
		return s.explain("set a file's mode", err)
	}
	return s.explain("write", file.Sync())
}

// FolderError is a failure of the store's own, not of the tool's file.
type FolderError struct{ error }

func (e *FolderError) Unwrap() error { return e.error }

// explain names the store; nil stays nil.
func (s *Store) explain(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &FolderError{fmt.Errorf("cannot %s in the store %s: %w; free space there, or choose another folder", what, s.dir, text.Cause(err))}
	}
	return &FolderError{fmt.Errorf("cannot %s in the store %s: %w", what, s.dir, text.Cause(err))}
}
