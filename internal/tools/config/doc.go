// Package config reads toolhost.yaml.
//
// One table of keys (rootKeys) says everything about each key: how its value is
// read, what it sets, its default, its TOOLHOST_* variable and what it is for.
// Parser, JSON Schema, the reference in docs/config.md and the suggestions of
// error messages come from it, so that they cannot differ.
//
// Loading goes through these steps, each plain data for the next:
//
//	bytes -> node (a bounded tree with positions; no anchors, aliases or tags)
//	      -> group (settings by path, each with its Source)
//	      -> merged layers: built-in, file, class, tool, environment, flag
//	      -> Loaded: what packages supervisor, turn and command take
//
// All problems of all files are reported at once. Nothing is called by files with
// a problem; what could be read of them comes with the Problems, for a command that
// needs a few settings and asks Problems.Concern whether these are among them.
//
// The package touches the system only through a Machine, starts nothing and
// keeps no state.
package config
