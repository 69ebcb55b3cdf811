// Package manual writes man pages, in the macros of man(7): one for each command
// of a cobra command line, made from what the command says about itself, and one
// from a document in Markdown.
package manual
