package seal

import (
	"slices"
	"testing"
)

// Secrets are read by the one that they are sealed for, from the one that sealed them.
func TestCurve(t *testing.T) {
	var keys [3]*Curve
	for i := range keys {
		var err error
		if keys[i], err = NewCurve(); err != nil {
			t.Fatal(err)
		}
	}
	from, to, other := keys[0], keys[1], keys[2]
	values := []string{"a", "", "\xff\xfe\x00"}
	sealed, err := from.Seal(values, to.Public())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := to.Open(sealed, from.Public()); err != nil || !slices.Equal(got, values) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := other.Open(sealed, from.Public()); err == nil {
		t.Error("another one reads them")
	}
	if _, err := to.Open(sealed, other.Public()); err == nil {
		t.Error("they are taken for another one's")
	}
	if _, err := from.Seal(nil, "nonsense"); err == nil {
		t.Error("they are sealed for nobody")
	}
}

func TestTheCurveIsSigned(t *testing.T) {
	key, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	curve, err := NewCurve()
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.SignCurve("epoch", curve.Public())
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckCurve(key.Public(), "epoch", curve.Public(), signature); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another's":         CheckCurve(stranger.Public(), "epoch", curve.Public(), signature),
		"of another life":   CheckCurve(key.Public(), "later", curve.Public(), signature),
		"of no key":         CheckCurve("nonsense", "epoch", curve.Public(), signature),
		"of something else": CheckCurve(key.Public(), "epoch", key.Public(), signature),
		"without signature": CheckCurve(key.Public(), "epoch", curve.Public(), nil),
	} {
		if err == nil {
			t.Errorf("a curve key %s is taken", name)
		}
	}
}
