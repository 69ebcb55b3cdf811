package httpapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/internal/access/tokens"
	"github.com/toolhost/toolhost/internal/atomicfile"
	"github.com/toolhost/toolhost/internal/lazy"
)

const minTokenBytes, maxTokenBytes = 32, 1024

// LoadToken reads the token for TCP clients from a file, which it makes (mode
// 0600, with a new token) if the file does not exist. It refuses one that others may read
// or change, is not a regular file, or holds too little to be a secret.
func LoadToken(path string) (string, error) {
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	made := atomicfile.Write(path, []byte(generate()+"\n"), atomicfile.Options{New: true})
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return "", fmt.Errorf("cannot make the token file %s: %w", path, made)
	}
	return readToken(path) // another process may have made it
}

func readToken(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("cannot open the token file: %w", err)
	}
	defer file.Close()
	// Also to root the folder's owner is another: the token itself can be read there.
	if err := tokens.Private(file); err != nil {
		return "", fmt.Errorf("the token file %w: remove it, and a new one is made", err)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxTokenBytes+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the token file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < minTokenBytes || len(raw) > maxTokenBytes || strings.ContainsFunc(token, notTokenChar) {
		return "", fmt.Errorf("the token file %s does not hold %d to %d letters and digits: remove it, and a new one is made", path, minTokenBytes, maxTokenBytes)
	}
	return token, nil
}

// notTokenChar: RFC 6750 gives these to bearer tokens.
func notTokenChar(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~+/=", r))
}

// generate makes a secret of 260 bits.
func generate() string { return rand.Text() + rand.Text() }

var generatedForm = lazy.Regexp(`^[A-Z2-7]{52}$`)

// generated says whether a secret has the form of one that generate made. Nobody guesses it,
// however often they try.
func generated(secret string) bool { return generatedForm().MatchString(secret) }
