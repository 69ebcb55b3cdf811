package config

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/supervisor"
)

// Secret is one that tools can be given.
type Secret struct {
	Name string
	// File holds it; a systemd credential is a file, too.
	File   string
	Source Source
}

// maxSecretFile is the longest secret with a line break, which may have two bytes.
const maxSecretFile = supervisor.MaxSecretBytes + 2

// Read reads the secret, afresh each time: it may have been exchanged. One line
// break at its end is not part of it. The errors never show it.
func (s Secret) Read(m Machine) (string, error) {
	raw, _, err := m.read(s.File, maxSecretFile)
	if err != nil {
		return "", fmt.Errorf("cannot read secret %s from %s: %w", s.Name, s.File, err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	switch {
	case len(value) > supervisor.MaxSecretBytes:
		return "", fmt.Errorf("cannot use secret %s: %s has more than %d bytes", s.Name, s.File, supervisor.MaxSecretBytes)
	case value == "":
		return "", fmt.Errorf("cannot use secret %s: %s is empty", s.Name, s.File)
	case strings.ContainsRune(value, 0):
		return "", fmt.Errorf("cannot use secret %s: %s holds a NUL character, which no variable can", s.Name, s.File)
	}
	return value, nil
}
