package format

import (
	"strings"
	"testing"
)

func TestReadList(t *testing.T) {
	for name, test := range map[string]struct{ list, want string }{
		"empty":            {`[]`, ``},
		"whole":            {`[{"id":"a","tool":"t","arguments":{"x": 1},"meta":{"k":2}}]`, `a t {"x":1} {"k":2}`},
		"_meta":            {`[{"id":"a","tool":"t","_meta":{"k":2}}]`, `a t {} {"k":2}`},
		"no arguments":     {`[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":null}]`, `a t {}|b t {}`},
		"no ids":           {`[{"tool":"t"},{"id":"","tool":"t"},{"id":null,"tool":"t"}]`, `1 t {}|2 t {}|3 t {}`},
		"ids that collide": {`[{"id":"2","tool":"t"},{"tool":"t"},{"id":"call-2","tool":"t"}]`, `2 t {}|call-call-2 t {}|call-2 t {}`},
		"unknown key":      {`[{"id":"a","tool":"t","args":{}},{"tool":"t"}]`, `a t !it has the unknown key "args"; a call has the keys id, tool, arguments, meta, _meta|2 t {}`},
		"internal key":     {`[{"id":"a","tool":"t","problem":"x"}]`, `a t !it has the unknown key "problem"; a call has the keys id, tool, arguments, meta, _meta`},
		"other spelling":   {`[{"id":"a","Tool":"t"}]`, `a  !it has the unknown key "Tool"; a call has the keys id, tool, arguments, meta, _meta`},
		"key twice":        {`[{"id":"a","tool":"t","tool":"u"}]`, `a u !it has the key "tool" twice`},
		"two metas":        {`[{"id":"a","tool":"t","meta":{},"_meta":{}}]`, `a t !it has both meta and _meta, which mean the same`},
		"no tool":          {`[{"id":"a"},{"id":"b","tool":5}]`, `a  !it names no tool|b  !it names no tool`},
		"arguments":        {`[{"id":"a","tool":"t","arguments":[]}]`, `a t !the arguments are not a JSON object`},
		"text for meta":    {`[{"id":"a","tool":"t","_meta":"x"}]`, `a t !_meta is not a JSON object`},
		"doubled":          {`[{"id":"a"},{},{"id":"a"}]`, `the calls 1 and 3 have the id "a": give each call a unique id`},
		"number as id":     {`[{"tool":"t"},{"id":5}]`, `call 2 has an id that is not text: put it in quotes, or leave it out`},
		"no object":        {`[{},5]`, `call 2 is not a JSON object: want {"id","tool","arguments"}`},
		"no list":          {`{}`, `want a JSON list of {"id","tool","arguments"}`},
		"no JSON":          {`[`, `not valid JSON: unexpected end of JSON input`},
		"no UTF-8":         {"[{\"id\":\"\xff\"}]", `the list is not UTF-8`},
	} {
		calls, err := ReadList([]byte(test.list))
		var got []string
		for _, c := range calls {
			said := string(c.Arguments) + " " + string(c.Meta)
			if c.Problem != "" {
				said = "!" + c.Problem
			}
			got = append(got, strings.TrimSpace(c.ID+" "+c.Tool+" "+said))
		}
		text := strings.Join(got, "|")
		if err != nil {
			text = err.Error()
		}
		if text != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, text, test.want)
		}
	}
}

// The older form of a call has no id by which it could be answered.
func TestLegacyFunctionCall(t *testing.T) {
	_, err := chat{}.Calls([]byte(`{"choices":[{"message":{"content":null,"function_call":{"name":"t","arguments":"{}"}},"finish_reason":"function_call"}]}`))
	if err == nil || !strings.Contains(err.Error(), "function_call") || !strings.Contains(err.Error(), "ask the model with tools") {
		t.Error(err)
	}
	calls, err := chat{}.Calls([]byte(`{"choices":[{"message":{"content":"hi","function_call":null}}]}`))
	if err != nil || len(calls) != 0 {
		t.Errorf("%v, %v", calls, err)
	}
}
