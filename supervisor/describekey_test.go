package supervisor

import (
	"testing"

	"github.com/toolhost/toolhost/sandbox"
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
	lease, err := sandbox.NewLease("one")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Close()
	var leased Request
	leased.Lease = lease
	if flightKey("", leased) == flightKey("", Request{}) {
		t.Error("the lease is not in the key, with which it ends")
	}
	if key(one) == key(one, one) || key(one) == key() {
		t.Error("the number is not in the key")
	}
}
