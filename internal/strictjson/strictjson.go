// Package strictjson refuses JSON that programs read differently, or that costs
// too much to read: what passes means the same to everybody who reads it after.
package strictjson

import "github.com/toolhost/toolhost/plugin/wirejson"

const (
	// MaxDepth bounds how deep objects and arrays are nested.
	MaxDepth = wirejson.MaxDepth
	// MaxValues bounds the values, those of members and elements included: each
	// takes about ValueBytes once it is decoded.
	MaxValues  = 1 << 17
	ValueBytes = 128
)

// Object says why raw is not one JSON object in UTF-8, without a key that is
// there twice in one object, nested no deeper than MaxDepth and of at most
// MaxValues values. What it takes satisfies json.Valid. It makes nothing of raw
// but notes of its keys.
func Object(raw []byte) error {
	_, err := Values(raw)
	return err
}

// Values is Object and says how many values raw has.
func Values(raw []byte) (int, error) { return wirejson.CheckObject(raw, MaxValues) }

// Message is Object for any value. It finds that there are TooMany values also where
// something else is wrong before: ask it before anything is decoded.
func Message(raw []byte) error {
	_, err := wirejson.CheckMessage(raw, MaxValues)
	return err
}

// TooMany says whether an error is about the number of values.
func TooMany(err error) bool { return wirejson.IsTooMany(err) }
