package seal

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"
)

// Curve is a key that secrets are sealed for. It lives as long as its process.
type Curve struct {
	pair   nkeys.KeyPair
	public string
}

// NewCurve makes one.
func NewCurve() (*Curve, error) {
	pair, err := nkeys.CreateCurveKeys()
	if err != nil {
		return nil, fmt.Errorf("cannot make a curve key: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("cannot use the curve key: %w", err)
	}
	return &Curve{pair, public}, nil
}

// Public is what others seal for.
func (c *Curve) Public() string { return c.public }

// Seal makes values readable for the owner of a curve key alone. They may be any bytes,
// which a JSON string may not.
func (c *Curve) Seal(values []string, to string) ([]byte, error) {
	list := make([][]byte, len(values))
	for i, value := range values {
		list[i] = []byte(value)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	sealed, err := c.pair.Seal(raw, to)
	if err != nil {
		return nil, fmt.Errorf("cannot seal the secrets: %w", err)
	}
	return sealed, nil
}

// Open reads what the owner of another curve key has sealed for this one.
func (c *Curve) Open(sealed []byte, from string) (values []string, err error) {
	raw, err := c.pair.Open(sealed, from)
	if err != nil {
		return nil, errors.New("its secrets are not sealed for this life of the worker")
	}
	var list [][]byte
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("cannot read what was sealed: %w", err)
	}
	for _, value := range list {
		values = append(values, string(value))
	}
	return values, nil
}

// curveSigned is what a worker signs, so that its curve key is known to be its own.
func curveSigned(epoch, curve string) []byte {
	return []byte("th1.xkey\x00" + epoch + "\x00" + curve)
}

// SignCurve vouches for a curve key in one life of its owner.
func (k *Key) SignCurve(epoch, curve string) ([]byte, error) {
	return k.pair.Sign(curveSigned(epoch, curve))
}

// CheckCurve says whether the owner of a public nkey vouches for the curve key.
func CheckCurve(public, epoch, curve string, signature []byte) error {
	pair, err := nkeys.FromPublicKey(public)
	if err != nil {
		return fmt.Errorf("%q is not a public key", public)
	}
	if !nkeys.IsValidPublicCurveKey(curve) || pair.Verify(curveSigned(epoch, curve), signature) != nil {
		return errors.New("its curve key is not signed by the key that fleet.workers names for it")
	}
	return nil
}
