// Package strictjson refuses JSON that programs read differently, or that costs
// too much to read: what passes means the same to everybody who reads it after.
package strictjson

import "github.com/toolhost/toolhost/plugin/wirejson"

const (
	// MaxDepth bounds how deep objects and arrays are nested.
	MaxDepth = wirejson.MaxDepth
	// MaxValues bounds the values, those of members and elements included: each
	// takes about a hundred bytes once it is decoded.
	MaxValues = 1 << 18
)

// Object says why raw is not one JSON object in UTF-8, without a key that is
// there twice in one object, nested no deeper than MaxDepth and of at most
// MaxValues values. What it takes satisfies json.Valid. It makes nothing of raw
// but notes of its keys.
func Object(raw []byte) error { return wirejson.CheckObject(raw, MaxValues) }
