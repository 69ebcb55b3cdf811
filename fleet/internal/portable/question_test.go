package portable

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/toolhost/toolhost/supervisor"
)

// What the machines of a fleet send each other of these comes out as it went in, what is
// empty included, in a form that stays.
func TestForms(t *testing.T) {
	for want, value := range map[string]any{
		`{"id":"1","prompt":"sure?"}`: &supervisor.Question{ID: "1", Prompt: "sure?"},
		`{"id":"2","schema":{"type":"string"},"timeoutNs":1000000000,"reach":"example.com:443","secret":true}`: &supervisor.Question{
			ID: "2", Schema: json.RawMessage(`{"type":"string"}`), Timeout: time.Second, Secret: true, Reach: "example.com:443",
		},
		`{"id":"3","requests":{"a":{"method":"roots/list"},"b":{"method":"m","params":{"x":1}}}}`: &supervisor.Question{
			ID: "3", Requests: map[string]supervisor.ClientRequest{"a": {Method: "roots/list"}, "b": {Method: "m", Params: json.RawMessage(`{"x":1}`)}},
		},
		`{}`:                           &supervisor.Answer{},
		`{"value":true,"always":true}`: &supervisor.Answer{Value: json.RawMessage("true"), Always: true},
		`{"denied":"headless"}`:        &supervisor.Answer{Denied: "headless"},
		`{"idleNs":1,"maxCalls":2,"once":true,"shared":true}`: &supervisor.Keep{Idle: 1, MaxCalls: 2, Once: true, Shared: true},
		`{"variable":"TOKEN","file":true}`:                    &supervisor.Secret{Variable: "TOKEN", File: true},
	} {
		raw, err := json.Marshal(value)
		if err != nil || string(raw) != want {
			t.Errorf("%s, %v, want %s", raw, err, want)
		}
		got := reflect.New(reflect.TypeOf(value).Elem())
		if err := json.Unmarshal(raw, got.Interface()); err != nil || !reflect.DeepEqual(got.Interface(), value) {
			t.Errorf("%+v, %v, want %+v", got, err, value)
		}
	}
}

// What is each machine's own, and a secret's value, is not sent. A new field is to be sent or
// refused.
func TestWhatIsNotSent(t *testing.T) {
	stay := map[string]bool{"Answer.Unused": true, "Keep.Asked": true, "Keep.Notices": true, "Secret.Value": true}
	for _, typed := range []reflect.Type{
		reflect.TypeFor[supervisor.Question](), reflect.TypeFor[supervisor.ClientRequest](), reflect.TypeFor[supervisor.Answer](),
		reflect.TypeFor[supervisor.Keep](), reflect.TypeFor[supervisor.Secret](),
	} {
		for i := range typed.NumField() {
			f := typed.Field(i)
			if name := typed.Name() + "." + f.Name; f.Tag.Get("json") == "" || (f.Tag.Get("json") == "-") != stay[name] {
				t.Errorf("%s has the tag %q", name, f.Tag)
			}
		}
	}
}
