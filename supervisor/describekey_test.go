package supervisor

import (
	"testing"

	"github.com/toolhost/toolhost/supervisor/internal/describe"
)

// A secret that is another one can be what a Describe needs: neither a failure nor a
// Describe under way is shared with it.
func TestADescribeIsThatOfItsSecrets(t *testing.T) {
	key := func(secrets ...Secret) describe.Key {
		return flightKey("", Request{Tool: Tool{Adapter: true}, Secrets: secrets})
	}
	one := Secret{Variable: "TOKEN", Value: "wrong"}
	if first := key(one); first != key(one) {
		t.Error("the same secrets have two keys")
	}
	for name, other := range map[string]Secret{
		"value":    {Variable: "TOKEN", Value: "right"},
		"variable": {Variable: "KEY", Value: "wrong"},
		"file":     {Variable: "TOKEN", Value: "wrong", File: true},
	} {
		if key(one) == key(other) {
			t.Errorf("the %s is not in the key", name)
		}
	}
	if key(one) == key(one, one) || key(one) == key() {
		t.Error("the number is not in the key")
	}
}
