// Package argrule judges calls by their arguments: rules of an operator that
// ask a human, or deny, where an argument matches a pattern.
//
// A rule reads the text of an argument. It cannot know what a tool makes of it:
// what a call can reach is for its sandbox to bound. Where a text can mean
// several things, a rule takes it for the one by which it holds.
package argrule
