package seal

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
	"google.golang.org/protobuf/proto"

	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// Session proves what one life of a caller sends to one life of a worker, at a hundredth
// of a signature's cost: both make its key from their own curve key and the other's. The
// worker knows by a signature whose curve key the caller's is. The caller need not know
// that of the worker's: what is proven for another key, the worker refuses.
type Session struct {
	epoch string // of the worker
	key   []byte
}

// CallerSession is the session as the caller has it, with the worker's public curve key.
func (c *Curve) CallerSession(worker, epoch string) (*Session, error) {
	return c.session(worker, epoch, c.public, worker)
}

// WorkerSession is the session as the worker has it, with the caller's public curve key.
func (c *Curve) WorkerSession(caller, epoch string) (*Session, error) {
	return c.session(caller, epoch, caller, c.public)
}

func (c *Curve) session(with, epoch, caller, worker string) (*Session, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteCurve, []byte(with))
	if err != nil {
		return nil, fmt.Errorf("%q is not a public curve key", with)
	}
	public, err := ecdh.X25519().NewPublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot use the curve key: %w", err)
	}
	secret, err := c.agree(public)
	if err != nil {
		return nil, fmt.Errorf("cannot use the curve key: %w", err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "th1.session\x00"+caller+"\x00"+worker, sha256.Size)
	return &Session{epoch, key}, err
}

func (c *Curve) agree(public *ecdh.PublicKey) ([]byte, error) {
	seed, err := c.pair.Seed()
	if err != nil {
		return nil, err
	}
	_, raw, err := nkeys.DecodeSeed(seed)
	if err != nil {
		return nil, err
	}
	private, err := ecdh.X25519().NewPrivateKey(raw)
	if err != nil {
		return nil, err
	}
	return private.ECDH(public)
}

func (s *Session) mac(kind Kind, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write(kind.signed(body))
	return h.Sum(nil)
}

// Seal proves a message by the session.
func (s *Session) Seal(kind Kind, m proto.Message) ([]byte, error) {
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&fleetv1.Signed{Body: body, Mac: s.mac(kind, body), Epoch: s.epoch})
}

// ErrEarlier is that of a message for another life of the worker, which nobody can check.
var ErrEarlier = errors.New("it is for another life of the worker")

// check says whether a message is proven by the session, which may be nil.
func (s *Session) check(kind Kind, m *fleetv1.Signed) error {
	switch {
	case s == nil || s.epoch != m.Epoch:
		return ErrEarlier
	case !hmac.Equal(m.Mac, s.mac(kind, m.Body)):
		return errNotItsSenders
	}
	return nil
}
