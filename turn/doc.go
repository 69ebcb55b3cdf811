// Package turn runs the tool calls that a model requests, in batches. Each call
// gets exactly one result, in call order, whatever happens. Exclusive tools run
// alone. A human can be asked for approval first, and can stop the turn at any
// time. Everything that happens is one ordered stream of events, journalled
// before it is shown.
//
// One goroutine owns the state of a Turn; calls, interactions, timers and
// callers send to it.
package turn
