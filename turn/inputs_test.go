package turn

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/supervisor"
)

// What a server asks for at once keeps its order; a key that is there twice counts once.
func TestInputsKeepTheirOrder(t *testing.T) {
	var in input
	raw := `{"inputRequests":{"z":{"method":"roots/list"},"a":{"method":"no/such"},"m":{"method":"x","params":{"b":1,"a":2}},"a":{"method":"roots/list"}}}`
	if err := json.Unmarshal([]byte(raw), &in); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, one := range in.InputRequests {
		keys = append(keys, one.key+" "+one.Method+" "+string(one.Params))
	}
	if !slices.Equal(keys, []string{"z roots/list ", `m x {"b":1,"a":2}`, "a roots/list "}) {
		t.Errorf("%q", keys)
	}
	for raw, ok := range map[string]bool{`{"inputRequests":null}`: true, `{"inputRequests":{}}`: true, `{"inputRequests":[]}`: false, `{"inputRequests":{"a":5}}`: false} {
		var in input
		if err := json.Unmarshal([]byte(raw), &in); (err == nil) != ok || len(in.InputRequests) != 0 {
			t.Errorf("%s: %v, %v", raw, in, err)
		}
	}
	list := inputsOf(map[string]supervisor.ClientRequest{"b": {Method: "2"}, "a": {Method: "1"}})
	if len(list) != 2 || list[0].key != "a" || list[1].Method != "2" {
		t.Errorf("%v", list)
	}
}
