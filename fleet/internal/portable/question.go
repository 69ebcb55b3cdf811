package portable

import (
	"encoding/json"
	"time"

	"github.com/toolhost/toolhost/supervisor"
)

// MaxQuestionBytes bounds a question on the wire, and its answer.
const MaxQuestionBytes = 256 << 10

// question is a supervisor.Question.
type question struct {
	ID       string                   `json:"id"`
	Prompt   string                   `json:"prompt,omitempty"`
	Schema   json.RawMessage          `json:"schema,omitempty"`
	Timeout  time.Duration            `json:"timeoutNs,omitempty"`
	Reach    string                   `json:"reach,omitempty"`
	Secret   bool                     `json:"secret,omitempty"`
	Requests map[string]clientRequest `json:"requests,omitempty"`
}

type clientRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// WriteQuestion and ReadQuestion are each other's inverse.
func WriteQuestion(q supervisor.Question) ([]byte, error) {
	out := question{ID: q.ID, Prompt: q.Prompt, Schema: q.Schema, Timeout: q.Timeout, Reach: q.Reach, Secret: q.Secret}
	for key, r := range q.Requests {
		if out.Requests == nil {
			out.Requests = map[string]clientRequest{}
		}
		out.Requests[key] = clientRequest(r)
	}
	return json.Marshal(out)
}

// ReadQuestion reads what WriteQuestion has written.
func ReadQuestion(raw []byte) (q supervisor.Question, err error) {
	var in question
	if err := json.Unmarshal(raw, &in); err != nil {
		return q, err
	}
	q = supervisor.Question{ID: in.ID, Prompt: in.Prompt, Schema: in.Schema, Timeout: in.Timeout, Reach: in.Reach, Secret: in.Secret}
	for key, r := range in.Requests {
		if q.Requests == nil {
			q.Requests = map[string]supervisor.ClientRequest{}
		}
		q.Requests[key] = supervisor.ClientRequest(r)
	}
	return q, nil
}

// answer is a supervisor.Answer.
type answer struct {
	Value  json.RawMessage `json:"value,omitempty"`
	Always bool            `json:"always,omitempty"`
	Denied string          `json:"denied,omitempty"`
}

// WriteAnswer and ReadAnswer are each other's inverse, but for Unused: what lets an answer
// be given back is each side's own.
func WriteAnswer(a supervisor.Answer) ([]byte, error) {
	return json.Marshal(answer{a.Value, a.Always, a.Denied})
}

// ReadAnswer reads what WriteAnswer has written.
func ReadAnswer(raw []byte) (supervisor.Answer, error) {
	var in answer
	err := json.Unmarshal(raw, &in)
	return supervisor.Answer{Value: in.Value, Always: in.Always, Denied: in.Denied}, err
}
