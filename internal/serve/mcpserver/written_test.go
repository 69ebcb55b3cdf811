package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const unusual = `{"z":12345678901234567890,"a":null,"m":[1.10]}`

// What a client writes reaches a server as it was written, whatever the SDK makes of it.
func TestWhatClientsWriteIsKept(t *testing.T) {
	m, f := readMessage([]byte(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":` + unusual + `,"later":null}}`))
	if f != nil {
		t.Fatal(f.text)
	}
	var given mcpsdk.ElicitResult
	if err := json.Unmarshal(m.(*jsonrpc.Response).Result, &given); err != nil {
		t.Fatal(err)
	}
	if raw, err := writtenAnswer(&given); err != nil || string(raw) != `{"action":"accept","content":`+unusual+`,"later":null}` {
		t.Errorf("%v: the answer is %s", err, raw)
	}
	for _, test := range []struct {
		form form
		want string
	}{{form{}, unusual}, {form{wraps: "z"}, "12345678901234567890"}} {
		if a := test.form.answer(&given); !a.Approve || string(a.Value) != test.want {
			t.Errorf("the form's value is %s, want %s", a.Value, test.want)
		}
	}

	const made = "dev.toolhost/exact"
	m, f = readMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1,"own":` + unusual + `,"` + made + `":"{}"},"inputResponses":{"k":{"action":"accept","content":` + unusual + `}}}}`))
	if f != nil {
		t.Fatal(f.text)
	}
	var p mcpsdk.CallToolParamsRaw
	if err := json.Unmarshal(m.(*jsonrpc.Request).Params, &p); err != nil {
		t.Fatal(err)
	}
	if raw := string(metaOf(&mcpsdk.CallToolRequest{Params: &p})); raw != `{"own":`+unusual+`}` {
		t.Errorf("_meta is %s", raw)
	}
	if raw, err := writtenAnswer(p.InputResponses["k"]); err != nil || !strings.Contains(string(raw), unusual) {
		t.Errorf("%v: the answer is %s", err, raw)
	}
}

// What has nothing to lose, or is too long to be kept twice, is left as it is.
func TestWhatIsNotKept(t *testing.T) {
	for _, raw := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1,"io.modelcontextprotocol/x":2}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"result":[1]}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":"` + strings.Repeat("x", maxWrittenBytes) + `"}}`,
	} {
		if _, changed, f := readMessageAs([]byte(raw)); changed || f != nil {
			t.Errorf("%.100s: changed %v, %+v", raw, changed, f)
		}
	}
}
