package portable

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/toolhost/toolhost/supervisor"
)

// A question and its answer come out as they went in, what is empty included.
func TestQuestions(t *testing.T) {
	for _, q := range []supervisor.Question{
		{ID: "1", Prompt: "sure?"},
		{ID: "2", Schema: json.RawMessage(`{"type":"string"}`), Timeout: time.Second, Secret: true, Reach: "example.com:443"},
		{ID: "3", Requests: map[string]supervisor.ClientRequest{"a": {Method: "roots/list"}, "b": {Method: "m", Params: json.RawMessage(`{"x":1}`)}}},
	} {
		raw, err := WriteQuestion(q)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ReadQuestion(raw); err != nil || !reflect.DeepEqual(got, q) {
			t.Errorf("%+v, %v, want %+v", got, err, q)
		}
	}
	for _, a := range []supervisor.Answer{{}, {Value: json.RawMessage("true"), Always: true}, {Denied: "headless"}} {
		raw, err := WriteAnswer(a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ReadAnswer(raw); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v, %v, want %+v", got, err, a)
		}
	}
	for _, typed := range []struct {
		of any
		n  int
	}{{supervisor.Question{}, reflect.TypeFor[question]().NumField()}, {supervisor.Answer{}, reflect.TypeFor[answer]().NumField() + 1}, {supervisor.Keep{}, reflect.TypeFor[keep]().NumField() + 2}} { // Unused has a frame of its own, Notices stay here, and Asked is about Describe
		if have := reflect.TypeOf(typed.of).NumField(); have != typed.n {
			t.Errorf("%T has %d fields, and %d are known here: send the others or refuse them", typed.of, have, typed.n)
		}
	}
}
