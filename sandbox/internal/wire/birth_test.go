package wire

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"
)

var birthSamples = []Birth{
	{},
	{Flags: math.MaxInt64, User: true, InsideUID: 1000, InsideGID: 1000, UID: 0x71000000, GID: 0x71000000, DropGroups: true},
	{Cgroup: true, Lone: true, Enter: MaxBirthFiles},
	{Stage: []Stage{{}, {Source: "/a\nb", Write: true, Map: true, Own: true, MapUID: -1, MapGID: math.MaxInt64}}},
}

func TestBirthRoundTrip(t *testing.T) {
	for _, want := range birthSamples {
		got, err := decodeBirth(want.Encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestMalformedBirthsAreRefused(t *testing.T) {
	good := birthSamples[3].Encode()
	for n := range good {
		if b, err := decodeBirth(good[:n]); err == nil || !reflect.DeepEqual(b, Birth{}) {
			t.Errorf("%d of %d bytes: got %+v, %v", n, len(good), b, err)
		}
	}
	zero := Birth{}.Encode()
	for name, raw := range map[string][]byte{
		"more after the end":  append(good[:len(good):len(good)], 0),
		"enter of -1":         Birth{Enter: -1}.Encode(),
		"enter of too many":   Birth{Enter: MaxBirthFiles + 1}.Encode(),
		"enter of MaxInt":     Birth{Enter: math.MaxInt64}.Encode(),
		"flag of 2":           slices.Concat(zero[:6*8], number(2), zero[7*8:]),
		"stages without them": append(bytes.Clone(zero[:len(zero)-8]), number(1<<40)...),
	} {
		if b, err := decodeBirth(raw); err == nil || !reflect.DeepEqual(b, Birth{}) {
			t.Errorf("%s: got %+v, %v", name, b, err)
		}
	}
}

func FuzzBirth(f *testing.F) {
	for _, b := range birthSamples {
		f.Add(b.Encode())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decodeBirth(raw)
		if err != nil {
			if !reflect.DeepEqual(got, Birth{}) {
				t.Fatalf("%+v beside %v", got, err)
			}
			return
		}
		if got.Enter < 0 || got.Enter > MaxBirthFiles || len(got.Stage) > len(raw) {
			t.Fatalf("accepted %+v", got)
		}
		if again, err := decodeBirth(got.Encode()); err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}
