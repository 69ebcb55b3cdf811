package seal

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	fleetv1 "github.com/toolhost/toolhost/fleet/proto/v1"
)

// A session proves what its caller sends, of the kind that it was sent as, to the life of
// the worker that it is for, and to nobody else.
func TestSession(t *testing.T) {
	var curves [3]*Curve
	for i := range curves {
		var err error
		if curves[i], err = NewCurve(); err != nil {
			t.Fatal(err)
		}
	}
	key, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	caller, worker, other := curves[0], curves[1], curves[2]
	session := func(s *Session, err error) *Session {
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	there := session(worker.WorkerSession(caller.Public(), "e"))
	raw, err := session(caller.CallerSession(worker.Public(), "e")).Seal(Offer, &fleetv1.Offer{Beat: 7})
	if err != nil {
		t.Fatal(err)
	}
	var got fleetv1.Offer
	if err := Open(Offer, key.Public(), there, raw, &got); err != nil || got.Beat != 7 {
		t.Errorf("%v, %v", got.Beat, err)
	}
	for what, open := range map[string]func() error{
		"another kind": func() error { return Open(Control, key.Public(), there, raw, &fleetv1.Offer{}) },
		"another caller": func() error {
			return Open(Offer, key.Public(), session(worker.WorkerSession(other.Public(), "e")), raw, &fleetv1.Offer{})
		},
		"another worker": func() error {
			return Open(Offer, key.Public(), session(other.WorkerSession(caller.Public(), "e")), raw, &fleetv1.Offer{})
		},
		"another text": func() error {
			var s fleetv1.Signed
			if err := proto.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
			s.Body[len(s.Body)-1]++
			changed, err := proto.Marshal(&s)
			if err != nil {
				t.Fatal(err)
			}
			return Open(Offer, key.Public(), there, changed, &fleetv1.Offer{})
		},
	} {
		if err := open(); !errors.Is(err, errNotItsSenders) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := Open(Offer, key.Public(), session(worker.WorkerSession(caller.Public(), "f")), raw, &got); !errors.Is(err, ErrEarlier) {
		t.Errorf("another life: %v", err)
	}
	if err := Open(Offer, key.Public(), nil, raw, &got); !errors.Is(err, ErrEarlier) {
		t.Errorf("no session: %v", err)
	}
	if _, err := caller.CallerSession("not a key", "e"); err == nil {
		t.Error("a session with nobody")
	}
}
