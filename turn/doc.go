// Package turn runs the tool calls that a model asked for, batch by batch: every
// call gets exactly one result, in call order, whatever happens; exclusive
// tools run alone; a human can be asked first and can stop it at any time; and
// all that happens is one ordered stream of events, journalled before it is
// shown.
//
// A Turn has one goroutine that owns its state; calls, interactions, timers and
// callers only send to it.
package turn
