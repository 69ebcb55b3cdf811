package prepare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/plugin/handshake"
	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor/internal/mask"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/redact"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// checkSecrets refuses what could not be handed over or kept.
func (n *preparation) checkSecrets() error {
	seen := map[string]bool{}
	for _, s := range n.Request.Secrets {
		var err error
		switch {
		case s.Variable == "" || strings.ContainsAny(s.Variable, "=\x00"):
			err = fmt.Errorf("invalid variable name %q of a secret: name it as in the environment", s.Variable)
		case ofToolhost(s.Variable):
			err = fmt.Errorf("the variable %s of a secret is toolhost's own, and the tool would not have the secret in it: name another", s.Variable)
		case seen[s.Variable]:
			err = fmt.Errorf("the secret %s is given twice: give each a variable of its own", s.Variable)
		case strings.ContainsRune(s.Value, 0) && !s.File:
			err = fmt.Errorf("the secret %s holds a NUL character, which no variable can: hand it over as a file", s.Variable)
		case s.Value == "":
			err = fmt.Errorf("the secret %s is empty: leave it out, or give its value", s.Variable)
		default:
			err = fits(s)
		}
		if err != nil {
			return outcome.Refuse(api.StatusStartFailed, api.ReasonSecrets, err)
		}
		seen[s.Variable] = true
	}
	var err error
	if n.Mask, err = newMask(n.Request.Secrets); err != nil {
		return outcome.Refuse(api.StatusStartFailed, api.ReasonSecrets, fmt.Errorf("cannot keep the secrets out of what the call gives out: %w; choose another secret", err))
	}
	return nil
}

// fits refuses a secret that could not be kept out of what the call gives out, by its name.
func fits(s spec.Secret) error {
	if err := redact.Check([]byte(s.Value)); err != nil {
		return fmt.Errorf("the secret %s %w; choose another secret", s.Variable, err)
	}
	return nil
}

// ofToolhost says whether a variable is one that toolhost sets behind those that the request has.
func ofToolhost(name string) bool {
	return name == handshake.CookieKey || slices.Contains(handshake.Variables, name) || slices.Contains(api.CallVariables, name)
}

// secretFiles are those of the sandbox.
func (n *preparation) secretFiles() (files []sandbox.Secret) {
	for _, s := range n.Request.Secrets {
		if s.File {
			files = append(files, sandbox.Secret{Name: s.Variable, Data: []byte(s.Value)})
		}
	}
	return files
}

// secretEnv are the variables.
func (n *Prepared) secretEnv() (env []string) {
	for _, s := range n.Request.Secrets {
		value := s.Value
		if s.File {
			value = sandbox.SecretsDir + "/" + s.Variable
		}
		env = append(env, s.Variable+"="+value)
	}
	return env
}

func newMask(secrets []spec.Secret) (*mask.Mask, error) {
	values := make([][]byte, len(secrets))
	for i, s := range secrets {
		values[i] = []byte(s.Value)
	}
	return mask.New(values...)
}
