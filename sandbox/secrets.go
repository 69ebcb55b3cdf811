package sandbox

import (
	"fmt"

	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/sandbox/internal/wire"
)

// SecretsDir is the folder of a call's secret files.
const SecretsDir = "/run/secrets"

// Bounds of a call's secret files.
const (
	MaxSecrets     = 32
	MaxSecretBytes = 64 << 10
)

// Secret is a small read-only file (mode 0400) that exists only in the call's
// sandbox, as SecretsDir/Name. It is in memory, which counts towards the call's,
// and ends with the call. Data is not in receipts, and fmt does not print it.
type Secret struct {
	// Name consists of at most 128 letters, digits, '.', '_' and '-'.
	Name string
	// Data has at most MaxSecretBytes.
	Data []byte
}

func (s Secret) String() string   { return fmt.Sprintf("secret %q (%d bytes)", s.Name, len(s.Data)) }
func (s Secret) GoString() string { return s.String() }

var secretName = lazy.Regexp(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// checkSecrets finds what is wrong with them. It never tells their data.
func checkSecrets(secrets []Secret) error {
	if len(secrets) > MaxSecrets {
		return fmt.Errorf("a call has %d secret files, at most %d are possible: put several values into one", len(secrets), MaxSecrets)
	}
	seen := map[string]bool{}
	for _, s := range secrets {
		switch {
		case !secretName().MatchString(s.Name):
			return fmt.Errorf("secret file name %q is invalid: use 1 to 128 letters, digits, '.', '_' or '-', and begin with no '.'", s.Name)
		case seen[s.Name]:
			return fmt.Errorf("secret file %s is given twice: give each its own name", s.Name)
		case len(s.Data) > MaxSecretBytes:
			return fmt.Errorf("secret file %s has %d bytes, at most %d are possible", s.Name, len(s.Data), MaxSecretBytes)
		}
		seen[s.Name] = true
	}
	return nil
}

// hide puts the secret files into the root's own tmpfs, and nothing over them.
func (p *Plan) hide(secrets []Secret) error {
	if len(secrets) == 0 {
		return nil
	}
	for _, m := range p.root.Mounts {
		if Within(m.Target, SecretsDir) {
			return fmt.Errorf("cannot show %s to the call: its secret files are in %s; leave out one of the two", m.Target, SecretsDir)
		}
	}
	for _, s := range secrets {
		p.root.Files = append(p.root.Files, wire.Text{Path: SecretsDir + "/" + s.Name, Content: string(s.Data), Private: true})
		p.root.Bytes += int64(len(s.Data)) + pageBytes
		p.receipt.Secrets = append(p.receipt.Secrets, s.Name)
	}
	return nil
}

// pageBytes is the largest page of any machine, by which a tmpfs counts.
const pageBytes = 64 << 10
