package client

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget"
)

// Calls are made again in the same turn, as retries, and only those whose results
// say that they may be.
func TestRunAgain(t *testing.T) {
	var batches [][]api.Call
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b api.Batch
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil || r.URL.Path != "/api/turns/mine/calls" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		batches = append(batches, b.Calls)
		var answer api.Results
		for _, c := range b.Calls {
			result := &api.Result{CallID: c.ID, Status: api.StatusOverloaded, Retry: api.Retry{Retryable: c.Tool == "busy"}}
			if c.Tool == "busy" && len(batches) == 3 {
				result.Status = api.StatusOK
			}
			answer.Results = append(answer.Results, result)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	c, err := New(Options{URL: server.URL, Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	retry := budget.Retry{Initial: time.Millisecond, Budget: &budget.RetryBudget{}}
	calls := []api.Call{{ID: "1", Tool: "firm"}, {ID: "2", Tool: "busy"}}
	results, err := c.RunAgain(t.Context(), "mine", calls, retry.Again)
	if err != nil || len(results) != 2 || results[0].Status != api.StatusOverloaded || !results[1].OK() || results[1].CallID != "2" {
		t.Errorf("%v, %v", results, err)
	}
	if len(batches) != 3 || len(batches[0]) != 2 || batches[0][1].Retry || len(batches[2]) != 1 || batches[2][0].ID != "2" || !batches[2][0].Retry || calls[1].Retry {
		t.Errorf("batches %+v, then %+v", batches, calls)
	}
}
