package spec

// Secret is a credential for a call. It is replaced by [REDACTED] in everything
// that the call returns (content, output, messages, file names). A malicious tool
// can still encode it.
type Secret struct {
	// Variable is the environment variable that holds the secret or, with File, the
	// path of a file with it, which exists only in the call's sandbox.
	Variable string `json:"variable"`
	File     bool   `json:"file,omitempty"`
	// Value is not in the JSON.
	Value string `json:"-"`
}

// String returns the variable's name, never the value.
func (s Secret) String() string   { return "secret " + s.Variable }
func (s Secret) GoString() string { return s.String() }
