package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// approvable is what a human is asked to approve.
type approvable struct {
	owner, turn, session string
	tool, rule           string
	arguments            json.RawMessage
	any, same            string // keys: with any arguments, and with the same ones
}

// covers says whether one is for a call.
func (one *KeptApproval) covers(c approvable) bool {
	return one.Rule == c.rule && (one.Key == c.any || one.Key == c.same) && one.mayCover(c)
}

// mayCover says as much while the rule and the keys of a call are not known yet.
func (one *KeptApproval) mayCover(c approvable) bool {
	if !one.RevokedAt.IsZero() || one.Tool != c.tool || one.Owner != c.owner {
		return false
	}
	switch one.For {
	case api.ForTurn:
		return one.TurnID == c.turn
	case api.ForSession:
		return one.SessionID == c.session
	}
	return one.For == api.ForIdentity
}

// neverApproved says of a call whose tool is not described yet that nothing can approve it.
func (b *batch) neverApproved(e *entry) bool {
	c := approvable{owner: b.t.info.Owner, turn: b.t.info.TurnID, session: b.t.lasting, tool: e.call.Tool}
	return b.t.people.headless && e.tool.mode() == ModeAsk && (e.tool.Destructive || !b.t.m.config.Approvals.mayHold(c))
}

// approvableOf is a call as people approve it. A tool that runs something else by now,
// or may touch something else, is another one.
func (b *batch) approvableOf(e *entry, rule, program string) approvable {
	what := fmt.Appendf(whatRuns(e.tool.Request), "%q", []string{program, policyKey(e.tool), b.t.m.config.Approvals.options.Host})
	call := e.call.Key()
	return approvable{
		owner: b.t.info.Owner, turn: b.t.info.TurnID, session: b.t.lasting, tool: e.call.Tool, rule: rule, arguments: e.call.Arguments,
		any: hashOf(what), same: hashOf(what, call[:]),
	}
}

// whatRuns are the words of a request's program, what they are made of, and where they run.
// Of secrets it has the names: another value is the same tool.
func whatRuns(r supervisor.Request) []byte {
	var argv, secrets []string
	var source string
	if r.Command != nil {
		argv = r.Command.Argv
		if tool := r.Command.Tool; tool != nil {
			source = string(tool.Spec().Source)
		}
	}
	for _, one := range r.Secrets {
		secrets = append(secrets, fmt.Sprint(one, one.File))
	}
	return fmt.Appendf(nil, "%q", []any{r.Tool.Path, r.Tool.Name, r.Tool.Args, argv, source, r.SHA256, r.Dir, r.Env, secrets})
}

func policyKey(t Tool) string {
	if p := policyOf(t.Request.Sandbox); p != nil {
		return p.Key
	}
	return ""
}

func hashOf(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
