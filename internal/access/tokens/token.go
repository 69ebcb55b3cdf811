// Package tokens keeps the tokens by which clients on TCP authenticate, and the
// sessions of browsers, in one file of the daemon's state: by their hashes, so that
// who reads the file can use none of them.
package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/access"
	"github.com/toolhost/toolhost/internal/lazy"
)

// Prefix begins every token, so that scanners for secrets find those that got into
// the wrong place. Form is all of one, for their rules: the prefix, an id, the secret
// and a checksum of what is before it.
const (
	Prefix = "toolhost_"
	Form   = `toolhost_[a-z2-7]{10}_[A-Z2-7]{26}[0-9a-f]{8}`
)

var form = lazy.Regexp("^" + Form + "$")

// Token is one as it is kept.
type Token struct {
	// ID is in the token itself, and no secret.
	ID string `json:"id"`
	// Name is the identity's. Of a session it is empty.
	Name  string        `json:"name,omitempty"`
	Roles []access.Role `json:"roles,omitempty"`
	// Tools are patterns; nil is all tools.
	Tools   []string  `json:"tools,omitempty"`
	Hash    string    `json:"hash"` // SHA-256 of the whole token, in hexadecimal
	Created time.Time `json:"created"`
	By      string    `json:"by"` // who made it
	// Expires is zero where it does not.
	Expires time.Time `json:"expires,omitzero"`
	// Revoked and RevokedBy are kept for a while for the record.
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revokedBy,omitempty"`
	// Session says whose a browser's session is; nil is a token of its own.
	Session *Holder `json:"session,omitempty"`
}

// Holder is who a browser's session acts for.
type Holder struct {
	// Token is the id of the token by which the browser was let in, FileHash the SHA-256,
	// in hexadecimal, of the old token of a file: another one in its place is not the same.
	Token    string `json:"token,omitempty"`
	FileHash string `json:"fileHash,omitempty"`
	// UID and Groups are the user's who let it in otherwise.
	UID    *uint32  `json:"uid,omitempty"`
	Groups []uint32 `json:"groups,omitempty"`
}

// Valid says whether a token may be used.
func (t Token) Valid(now time.Time) bool {
	return t.Revoked.IsZero() && (t.Expires.IsZero() || now.Before(t.Expires))
}

// State says in one word how a token is.
func (t Token) State(now time.Time) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked"
	case !t.Valid(now):
		return "expired"
	}
	return "valid"
}

var nameForm = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName says what is wrong with a token's name.
func CheckName(name string) error {
	if !nameForm().MatchString(name) {
		return fmt.Errorf("%q is not a name for a token: write 1 to 64 of A-Z, a-z, 0-9, ., _ and -, the first one a letter or digit", name)
	}
	return nil
}

// generate makes what is shown once, and the id in it.
func generate() (secret, id string) {
	id = strings.ToLower(rand.Text()[:10])
	body := Prefix + id + "_" + rand.Text()
	return body + checksum(body), id
}

func checksum(body string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body)))
}

// IDOf is the id in what may be a token; false if it has not the form of one.
func IDOf(secret string) (id string, ok bool) {
	if len(secret) > 128 || !form().MatchString(secret) || checksum(secret[:len(secret)-8]) != secret[len(secret)-8:] {
		return "", false
	}
	return secret[len(Prefix) : len(Prefix)+10], true
}

// HashOf is the SHA-256 of a secret, in hexadecimal: all that is kept of one.
func HashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// is compares in constant time.
func (t Token) is(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(t.Hash), []byte(HashOf(secret))) == 1
}

// file is what is on disk.
type file struct {
	Version int     `json:"version"`
	Tokens  []Token `json:"tokens"`
}

const (
	version = 1
	// maxTokens bounds those that are valid, maxSessions the sessions: the oldest goes
	// for a new one. keepRevoked is how long a revoked or expired one is kept.
	maxTokens   = 1000
	maxSessions = 1000
	// maxOwnSessions bounds those that act for one identity: it ends no others'.
	maxOwnSessions = 32
	keepRevoked    = 90 * 24 * time.Hour
)

// tidy forgets what is long over.
func (f *file) tidy(now time.Time) {
	f.Tokens = slices.DeleteFunc(f.Tokens, func(t Token) bool {
		over := t.Expires
		if !t.Revoked.IsZero() {
			over = t.Revoked
		}
		if t.Session != nil {
			return !t.Valid(now)
		}
		return !t.Valid(now) && now.Sub(over) > keepRevoked
	})
}

func (f *file) count(is func(Token) bool) (n int) {
	for _, t := range f.Tokens {
		if is(t) {
			n++
		}
	}
	return n
}

// makeRoom takes the oldest of some out where there are as many as there may be.
func (f *file) makeRoom(most int, is func(Token) bool) {
	if f.count(is) >= most {
		oldest := slices.IndexFunc(f.Tokens, is)
		f.Tokens = slices.Delete(f.Tokens, oldest, oldest+1)
	}
}

// clone shares nothing that is changed.
func (f *file) clone() *file {
	return &file{Version: f.Version, Tokens: slices.Clone(f.Tokens)}
}
