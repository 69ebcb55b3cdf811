package turn

import (
	"encoding/json"
	"testing"
)

// No arguments are the same call in whichever way a client writes that.
func TestKeyOfNoArguments(t *testing.T) {
	want := Call{Tool: "x"}.Key()
	for _, none := range []string{"null", " null ", "{}", "{ }"} {
		if (Call{Tool: "x", Arguments: json.RawMessage(none)}).Key() != want {
			t.Errorf("%q is another call", none)
		}
	}
	if (Call{Tool: "x", Arguments: json.RawMessage(`{"a":null}`)}).Key() == want {
		t.Error("an argument that is null makes no difference")
	}
}
