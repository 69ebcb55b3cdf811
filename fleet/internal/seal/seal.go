// Package seal signs what callers send and checks it. Keys are nkeys: ed25519, by which
// NATS authenticates as well.
package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"
	"google.golang.org/protobuf/proto"

	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
	"github.com/toolhost/toolhost/internal/atomicfile"
	"github.com/toolhost/toolhost/internal/text"
)

// Kind is what a signature is for: one of another kind does not count.
type Kind string

// The kinds.
const (
	Offer   Kind = "offer"
	Control Kind = "ctl"
	Beat    Kind = "beat"
)

func (k Kind) signed(body []byte) []byte { return append([]byte("th1."+string(k)+"\x00"), body...) }

// Key is a party's own.
type Key struct {
	pair   nkeys.KeyPair
	public string
	seed   []byte
}

// Create makes a key.
func Create() (*Key, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	return keyOf(pair)
}

func keyOf(pair nkeys.KeyPair) (*Key, error) {
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("cannot use the key: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, fmt.Errorf("cannot use the key: %w", err)
	}
	return &Key{pair, public, seed}, nil
}

// ReadFile reads a key's seed from a file that only its owner may read.
func ReadFile(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the fleet's key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the fleet's key %s is not a regular file: give one that toolhost fleet key has made", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the fleet's key %s has mode %04o, and others may use it: chmod 600 it", path, info.Mode().Perm())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the fleet's key: %w", err)
	}
	pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(raw))))
	if err != nil {
		return nil, fmt.Errorf("%s is not a seed of an nkey: make one with toolhost fleet key", path)
	}
	key, err := keyOf(pair)
	if err == nil && !nkeys.IsValidPublicUserKey(key.public) {
		err = fmt.Errorf("%s is not a user's nkey (its public key begins with %c, not U)", path, key.public[0])
	}
	return key, err
}

// WriteFile keeps the key in a new file of mode 0600, in a folder that must exist.
func (k *Key) WriteFile(path string) error {
	err := atomicfile.Write(path, append(k.seed, '\n'), atomicfile.Options{New: true})
	switch dir := filepath.Dir(path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot write the fleet's key %s: the folder %s does not exist: make it with mkdir -m 700, or correct the path", path, dir)
	case err != nil:
		return fmt.Errorf("cannot write the fleet's key %s: %w", path, text.Cause(err))
	}
	return nil
}

// Public is the key that others know.
func (k *Key) Public() string { return k.public }

// Sign answers the engine's challenge.
func (k *Key) Sign(nonce []byte) ([]byte, error) { return k.pair.Sign(nonce) }

// Seal signs a message.
func (k *Key) Seal(kind Kind, m proto.Message) ([]byte, error) {
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	signature, err := k.pair.Sign(kind.signed(body))
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&fleetv1.Signed{Body: body, Signature: signature})
}

// CheckPublic says what is wrong with a public key.
func CheckPublic(public string) error {
	if !nkeys.IsValidPublicUserKey(public) {
		return fmt.Errorf("%q is not the public nkey of a user: it begins with U and has 56 characters, as toolhost fleet key prints it", public)
	}
	return nil
}

var errNotItsSenders = errors.New("its signature is not its sender's")

// Open checks that a message is of the kind, and signed by the key public or proven by the
// session, and decodes it. session may be nil.
func Open(kind Kind, public string, session *Session, raw []byte, into proto.Message) error {
	var s fleetv1.Signed
	if err := proto.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("cannot decode it: %w", err)
	}
	if err := check(kind, public, session, &s); err != nil {
		return err
	}
	if err := proto.Unmarshal(s.Body, into); err != nil {
		return fmt.Errorf("cannot decode it: %w", err)
	}
	return nil
}

func check(kind Kind, public string, session *Session, s *fleetv1.Signed) error {
	if len(s.Mac) > 0 {
		return session.check(kind, s)
	}
	pair, err := nkeys.FromPublicKey(public)
	if err != nil {
		return fmt.Errorf("%q is not a public key", public)
	}
	if err := pair.Verify(kind.signed(s.Body), s.Signature); err != nil {
		return errNotItsSenders
	}
	return nil
}
