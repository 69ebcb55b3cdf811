package turn

import (
	"iter"
	"slices"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// Bounds on the results of all turns that wait in memory for their reader. Results beyond
// them are only in the journal until they are read.
const (
	maxHeldBytes = 256 << 20
	maxHeldPart  = 16 // of the memory that the program may use
	// maxShelvedBytes is on record whole, however long it is as JSON.
	maxShelvedBytes = 8 << 20
)

// Recall reads the result of a call from a Journal, by the call's ID in events. It must be
// safe for concurrent use.
type Recall func(turnID, callKey string) (*api.Result, error)

// Results holds the results of a completed batch. Its methods are not safe for concurrent use.
type Results struct {
	t    *Turn
	list []kept
}

// kept is what Results has of a call.
type kept struct {
	result  *api.Result // nil if it is on record alone
	call    Call
	key     string
	counted int64
}

// results are the batch's, which is over.
func (b *batch) results() *Results {
	r := &Results{t: b.t}
	for _, e := range b.entries {
		r.list = append(r.list, kept{e.result, e.call, e.key, e.size})
	}
	return r
}

// All yields one result for each call, in call order. None is nil.
func (r *Results) All() iter.Seq[*api.Result] {
	return func(yield func(*api.Result) bool) {
		for _, k := range r.list {
			if !yield(r.resultOf(k)) {
				return
			}
		}
	}
}

// Close releases the results. It may be called more than once, and on nil.
func (r *Results) Close() {
	if r == nil {
		return
	}
	for _, k := range r.list {
		r.t.m.held.Add(-k.counted)
	}
	r.list = nil
}

func (r *Results) resultOf(k kept) *api.Result {
	if k.result != nil {
		return k.result
	}
	id := r.t.info.TurnID
	result, err := r.t.m.config.Recall(id, k.key)
	if err == nil {
		return result
	}
	result = supervisor.Verdict{
		CallID: k.call.ID, Tool: k.call.Tool, Status: api.StatusNoResult, Reason: api.ReasonJournal,
		Message: "[FAILED] The call is over, and its result is on record, which cannot be read: " + err.Error(),
	}.Result()
	result.TurnID, result.Retry = id, api.Retry{SideEffects: "possible"}
	return result
}

// shelve has what there is no room for in memory on record alone.
func (r *recorded) shelve(m *Manager) {
	for _, e := range r.fresh {
		e.size = int64(e.result.OutputBytes())
		full := m.held.Add(e.size) > m.room
		if full && m.config.Recall != nil && r.err == nil && !r.ends && e.size <= maxShelvedBytes {
			m.held.Add(-e.size)
			e.size, e.result, e.shelved = 0, nil, true
		}
	}
	clear(r.fresh)
	r.fresh = r.fresh[:0]
}

// shelved says whether results of the batch are on record alone.
func (b *batch) shelved() bool {
	return slices.ContainsFunc(b.entries, func(e *entry) bool { return e.shelved })
}
