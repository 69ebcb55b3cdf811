// Package start holds the rule by which a tool starts at most once for a call, and by
// which its caller knows whether it did: what the caller of one call and the worker of
// one attempt do with what they hear. It is pure: who sends, waits and writes is
// elsewhere.
//
// A caller offers the call to workers, which prepare it; nothing of the tool runs yet.
// To one that is ready it sends a go, and to the others a void. A worker writes the
// attempt to its ledger, then starts the tool. A worker that says never remembers it
// before it says it. An offer that waits for a slot at its worker is to this rule one that
// is late on its way. Offers and controls name the epoch of the worker, the life of its
// process, and are good in no other.
//
// For tools that the operator has confirmed as read-only or idempotent, the go may be in
// the offer. Such a call may start on more than one worker, one after another.
package start
