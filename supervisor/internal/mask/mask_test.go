package mask

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// A tool can make a name of a secret: neither what it reached, nor what it was refused, nor
// the advice on that shows it. What other calls have of the same network stays.
func TestNamesOfTheNetwork(t *testing.T) {
	const secret = "t0ken-of-a-tenant"
	v, err := New([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	of := &api.Network{
		Flows:   []api.NetworkFlow{{Name: secret + ".example.com", Error: "no such host " + secret}},
		Refused: []api.NetworkRefusal{{Name: secret + ".example.org", Why: "the HTTP host is " + secret}},
	}
	r := &api.Result{Retry: api.Retry{Hint: "grant " + secret + ".example.org"}}
	r.Network = of
	v.Result(r)
	if raw, _ := json.Marshal(r); strings.Contains(string(raw), secret) || strings.Count(string(raw), "[REDACTED]") != 5 {
		t.Errorf("%s", raw)
	}
	if !strings.HasPrefix(of.Flows[0].Name, secret) || !strings.HasPrefix(of.Refused[0].Name, secret) {
		t.Errorf("%+v", of)
	}
}
