package supervisor

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/sandbox"
)

// Secret is a credential that a call is given. Whatever the call brings back
// (content, output, messages, files' names) has [REDACTED] in its place; a tool
// that wants to can of course disguise it.
type Secret struct {
	// Variable of the environment that holds it, or, with File, the path of a
	// file that does, which exists in the call's sandbox alone.
	Variable string
	File     bool
	Value    string
}

// String tells no more than the name.
func (s Secret) String() string   { return "secret " + s.Variable }
func (s Secret) GoString() string { return s.String() }

// checkSecrets refuses what could not be handed over or kept.
func (c *Call) checkSecrets() error {
	for _, s := range c.request.Secrets {
		var err error
		switch {
		case s.Variable == "" || strings.ContainsAny(s.Variable, "=\x00"):
			err = fmt.Errorf("invalid variable name %q of a secret: name it as in the environment", s.Variable)
		case strings.ContainsRune(s.Value, 0) && !s.File:
			err = fmt.Errorf("the secret %s holds a NUL character, which no variable can: hand it over as a file", s.Variable)
		case s.Value == "":
			err = fmt.Errorf("the secret %s is empty: leave it out, or give its value", s.Variable)
		}
		if err != nil {
			return refuse(api.StatusStartFailed, api.ReasonSecrets, err)
		}
	}
	var err error
	if c.veil, err = newVeil(c.request.Secrets); err != nil {
		return refuse(api.StatusStartFailed, api.ReasonSecrets, fmt.Errorf("cannot keep the secrets out of what the call gives out: %w; choose another secret", err))
	}
	return nil
}

// secretFiles are those of the sandbox.
func (c *Call) secretFiles() (files []sandbox.Secret) {
	for _, s := range c.request.Secrets {
		if s.File {
			files = append(files, sandbox.Secret{Name: s.Variable, Data: []byte(s.Value)})
		}
	}
	return files
}

// secretEnv are the variables.
func (c *Call) secretEnv() (env []string) {
	for _, s := range c.request.Secrets {
		value := s.Value
		if s.File {
			value = sandbox.SecretsDir + "/" + s.Variable
		}
		env = append(env, s.Variable+"="+value)
	}
	return env
}
