package portable

import (
	"slices"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sandbox"
	"github.com/toolhost/toolhost/supervisor"
)

// feature is one that a request may use and a worker cannot do.
type feature struct {
	name string
	used func(r supervisor.Request, p sandbox.Policy) bool
	// placed: a call that names its worker (Where) means what is on that one.
	placed bool
}

const ownProfile = "a timeout profile of the host's own"

// features are all of them, by the names that people are shown.
var features = []feature{
	{"files of this machine (read)", func(_ supervisor.Request, p sandbox.Policy) bool { return len(p.Read) > 0 }, true},
	{"files of this machine (write)", func(_ supervisor.Request, p sandbox.Policy) bool { return len(p.Write) > 0 }, true},
	{"a working directory of this machine (dir)", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Dir != "" }, true},
	{"a workspace that stays (data)", func(_ supervisor.Request, p sandbox.Policy) bool { return p.Workspace != "" }, false},
	{"a lock on data of this machine (data)", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Lock.File != "" }, false},
	{"no sandbox (tier none)", func(_ supervisor.Request, p sandbox.Policy) bool { return p.Tier == sandbox.TierNone }, false},
	{"what a kept MCP server announces (keep)", func(r supervisor.Request, _ sandbox.Policy) bool {
		return r.Keep != nil && r.Keep.Notices != nil
	}, false},
	{"a kept process of one share alone (keep)", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Keep != nil && r.Share.Apart }, false},
	{"files taken out of the workspace", func(r supervisor.Request, _ sandbox.Policy) bool { return r.FilesTo != "" }, false},
	{"turns of its own (turns)", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Host != nil }, false},
	{"a pool (running)", func(r supervisor.Request, _ sandbox.Policy) bool { return r.Pool.Running != 0 }, false},
	{"a quota of calls, memory or CPU", func(r supervisor.Request, _ sandbox.Policy) bool {
		return r.Share.Running != 0 || r.Share.Waiting != 0 || r.Share.Bounded()
	}, false},
	{"stdin, stdout or stderr of the caller's", func(r supervisor.Request, _ sandbox.Policy) bool {
		c := r.Command
		return c != nil && (c.Stdin != nil || c.Stdout != nil || c.Stderr != nil)
	}, false},
	{"a command made of Go functions", func(r supervisor.Request, _ sandbox.Policy) bool {
		return r.Command != nil && r.Command.Tool != nil && len(r.Command.Tool.Spec().Source) == 0
	}, false},
	{"limits of I/O by device (ioMax)", func(r supervisor.Request, _ sandbox.Policy) bool { return len(r.Limits.IOMax) > 0 }, false},
	{"a call of more than 256 KiB", func(r supervisor.Request, _ sandbox.Policy) bool {
		return len(r.Arguments)+len(r.Meta)+len(r.Client) > MaxBytes/2
	}, false},
	{"secrets of more than 512 KiB", func(r supervisor.Request, _ sandbox.Policy) bool {
		size := 0
		for _, s := range r.Secrets {
			size += len(s.Value)
		}
		return size > maxSecretBytes
	}, false},
	{"a path, an argument of its command or a variable that is not UTF-8", notUTF8, false},
}

// Stays are the names of what the call uses and a worker cannot do: for these it stays on
// the caller's machine. What a call with Where may read and write is on its worker.
func Stays(r supervisor.Request, config supervisor.Config) (names []string) {
	return stays(r, config, len(r.Where) > 0)
}

func stays(r supervisor.Request, config supervisor.Config, placed bool) (names []string) {
	policy := policyOf(r, config)
	for _, f := range features {
		if !(placed && f.placed) && f.used(r, policy) {
			names = append(names, f.name)
		}
	}
	if config.Profile.Name != "" {
		names = append(names, ownProfile)
	}
	return names
}

// BeyondCeiling says whether the call's network is beyond the ceiling of the caller's machine:
// that holds for all calls which this one may make, also while a worker is free.
func BeyondCeiling(r supervisor.Request, config supervisor.Config) bool {
	return config.Ceiling.Refuses(policyOf(r, config)) != nil
}

// notUTF8 says whether JSON would change one of the texts that may be any bytes.
func notUTF8(r supervisor.Request, p sandbox.Policy) bool {
	texts := slices.Concat([]string{r.Tool.Path, r.Dir}, r.Tool.Args, r.Env, p.Read, p.Write)
	if r.Command != nil {
		texts = append(texts, r.Command.Argv...)
	}
	return slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) })
}

func policyOf(r supervisor.Request, config supervisor.Config) sandbox.Policy {
	if r.Sandbox != nil {
		return *r.Sandbox
	}
	return config.Sandbox
}
