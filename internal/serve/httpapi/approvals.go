package httpapi

import (
	"errors"
	"slices"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/turn"
)

func (s *Server) approvals(q *request) error {
	list := slices.DeleteFunc(s.config.Turns.Approvals().List(), func(a api.Approval) bool { return !q.who.SeesQuestions(a.Owner) })
	return q.answer(api.Approvals{Approvals: list})
}

// revokeApproval takes one back. One that the client may not take back is answered as
// if it were not there.
func (s *Server) revokeApproval(q *request) error {
	id := q.r.PathValue("approvalId")
	revoked, err := s.config.Turns.Approvals().Revoke(id, q.who.Revokes)
	switch {
	case errors.Is(err, turn.ErrNoApproval):
		return refuse(codeNotFound, "no approval "+printable(id)+" is in force", "see /api/approvals; it was revoked, has expired, or what it was for is over")
	case err != nil: // it is revoked here, and comes back with the next daemon if nothing can be written before
		s.config.Logger.Error("an approval was revoked, and that cannot be kept", "error", err)
	}
	s.note(q.who.on(), "approval.revoke", id+": "+revoked.Tool+" for the "+revoked.For+" of "+revoked.Owner)
	if err != nil {
		return refuse(codeUnready, "the approval is revoked, but that is not saved: the approvals file cannot be written, and after a restart the approval would hold again", "it is tried again every few seconds, and by another revoke; the daemon's log says why")
	}
	return q.answer(api.Done{OK: true})
}
