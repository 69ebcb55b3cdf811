package turn

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/toolhost/toolhost/supervisor"
)

// inputRequests are what a server asks for at once, in the order in which it has written
// that: people are asked in that order.
type inputRequests []inputRequest

type inputRequest struct {
	key    string
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// UnmarshalJSON reads an object. Of a key that is there twice the last counts.
func (r *inputRequests) UnmarshalJSON(raw []byte) error {
	in := json.NewDecoder(bytes.NewReader(raw))
	switch open, err := in.Token(); {
	case err != nil || open == nil:
		return err
	case open != json.Delim('{'):
		return errors.New("the requests of a server are not an object")
	}
	var list inputRequests
	for in.More() {
		key, err := in.Token()
		var one inputRequest
		if err == nil {
			err = in.Decode(&one)
		}
		if err != nil {
			return err
		}
		one.key, _ = key.(string)
		list = append(slices.DeleteFunc(list, func(other inputRequest) bool { return other.key == one.key }), one)
	}
	*r = list
	return nil
}

// inputsOf are those of an adapter that has no order.
func inputsOf(requests map[string]supervisor.ClientRequest) (list inputRequests) {
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		list = append(list, inputRequest{key, requests[key].Method, requests[key].Params})
	}
	return list
}
