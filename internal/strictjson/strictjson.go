// Package strictjson refuses JSON that programs read differently, or that costs
// too much to read: what passes means the same to everybody who reads it after.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxDepth bounds how deep objects and arrays are nested.
const MaxDepth = 128

// Object says why raw is not one JSON object in UTF-8, without a key that is
// there twice in one object and nested no deeper than MaxDepth. What it takes
// satisfies json.Valid.
func Object(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("the JSON is not UTF-8")
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	first, err := in.Token()
	if err != nil {
		return broken(err)
	}
	if first != json.Delim('{') {
		return errors.New("this is no JSON object")
	}
	if err := checkObject(in, 1); err != nil {
		return err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the JSON goes on after its JSON object")
	}
	if !json.Valid(raw) { // tokens are read with less care
		return errors.New("this is no JSON")
	}
	return nil
}

// checkObject reads the rest of an object.
func checkObject(in *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return broken(err)
		}
		name := key.(string) // the decoder takes no other keys
		if seen[name] {
			return fmt.Errorf("the key %.64q is there twice in one object", name)
		}
		seen[name] = true
		if err := checkValue(in, depth); err != nil {
			return err
		}
	}
	return end(in)
}

func checkValue(in *json.Decoder, depth int) error {
	token, err := in.Token()
	if err != nil {
		return broken(err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth++; depth > MaxDepth {
		return fmt.Errorf("the JSON is nested deeper than %d", MaxDepth)
	}
	if delim == '{' {
		return checkObject(in, depth)
	}
	for in.More() {
		if err := checkValue(in, depth); err != nil {
			return err
		}
	}
	return end(in)
}

func end(in *json.Decoder) error {
	_, err := in.Token()
	return broken(err)
}

func broken(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early")
	}
	return fmt.Errorf("this is no JSON: %w", err)
}
