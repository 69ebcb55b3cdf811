package turn

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/api"
)

// What a host asks about a tool is not the approval of its calls, nor the other way
// round.
func TestRaisedApprovalsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.config.Tool = func(string) (Tool, bool) { return Tool{Mode: ModeAsk}, true }
		turn := w.begin(t, Spec{})
		defer turn.End()
		raised := make(chan api.Raised, 1)
		go func() {
			r, err := turn.Raise(t.Context(), Question{Kind: api.KindApproval, Prompt: "Spend money?", Tool: "work"})
			if err != nil {
				t.Error(err)
			}
			raised <- r
		}()
		synctest.Wait()
		go answer(t, turn, "a", api.Answer{Approve: true, Always: true})
		want(t, run(t, turn, callOf("a", "work", 1)), "ok")
		info, _ := turn.Info()
		if len(info.PendingInteractions) != 1 || !info.PendingInteractions[0].Host {
			t.Fatalf("after the approval of a call: %+v", info.PendingInteractions)
		}
		if err := turn.Answer(info.PendingInteractions[0].ID, api.Answer{}); err != nil {
			t.Error(err)
		}
		if r := <-raised; r.Outcome != api.OutcomeDenied {
			t.Errorf("%+v", r)
		}

		other := w.begin(t, Spec{})
		defer other.End()
		go func() { _, _ = other.Raise(t.Context(), Question{Kind: api.KindApproval, Prompt: "?", Tool: "work"}) }()
		synctest.Wait()
		info, _ = other.Info()
		if err := other.Answer(info.PendingInteractions[0].ID, api.Answer{Approve: true, Always: true}); err != nil {
			t.Error(err)
		}
		go answer(t, other, "b", api.Answer{})
		want(t, run(t, other, callOf("b", "work", 1)), "denied/user")
	})
}

func TestRaisedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newWorld().begin(t, Spec{})
		defer turn.End()
		for i := range maxRaised {
			go func() {
				if _, err := turn.Raise(t.Context(), Question{Kind: api.KindEscalation, Prompt: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		for name, q := range map[string]Question{
			"one more": {Kind: api.KindEscalation, Prompt: "?"}, "schema": {Kind: api.KindQuestionnaire, Schema: json.RawMessage("[")},
			"none": {Kind: api.KindQuestionnaire, Prompt: "?"},
		} {
			if _, err := turn.Raise(t.Context(), q); err == nil {
				t.Errorf("%s is asked", name)
			}
		}
	})
}

// A password is a secret even if its question does not say so.
func TestRaisedPasswordsAreSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newWorld().begin(t, Spec{})
		defer turn.End()
		raised := make(chan api.Raised, 1)
		go func() {
			r, _ := turn.Raise(t.Context(), Question{Kind: api.KindPassword, Prompt: "?"})
			raised <- r
		}()
		synctest.Wait()
		info, _ := turn.Info()
		if i := info.PendingInteractions[0]; !i.Secret || turn.Answer(i.ID, api.Answer{Approve: true}) == nil {
			t.Errorf("%+v is answered by a yes", i)
		}
		if err := turn.Answer(info.PendingInteractions[0].ID, api.Answer{Value: json.RawMessage(`"hunter2"`)}); err != nil {
			t.Error(err)
		}
		if r := <-raised; string(r.Value) != `"hunter2"` {
			t.Errorf("%+v", r)
		}
	})
}
