package spec

// Secret is a credential that a call is given. Whatever the call brings back
// (content, output, messages, files' names) has [REDACTED] in its place; a tool
// that wants to can of course disguise it.
type Secret struct {
	// Variable of the environment that holds it, or, with File, the path of a
	// file that does, which exists in the call's sandbox alone.
	Variable string `json:"variable"`
	File     bool   `json:"file,omitempty"`
	// Value is in no JSON.
	Value string `json:"-"`
}

// String returns the variable's name, never the value.
func (s Secret) String() string   { return "secret " + s.Variable }
func (s Secret) GoString() string { return s.String() }
