package mcpclients

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
	"github.com/toolhost/toolhost/internal/tools/callargs"
)

// credentialName is found in names of options, headers and variables that hold
// a credential. It finds too many rather than too few.
const credentialName = `(?:token|key|secret|pass|pwd|auth|cred|cookie|bearer|\bpat\b|_pat\b)`

var (
	credentialOption = lazy.Regexp(`(?i)` + credentialName + `|^-H$|header`)
	// --api-key=abc, "apiKey": "abc", Authorization: abc, --token abc, Bearer abc.
	credentialInside = lazy.Regexp(`(?i)` + credentialName + `[\w.-]*["']?\s*[=:]\s*["']?[^\s"'=:/]|-[\w-]*` + credentialName + `[\w-]*\s+\S|\b(?:bearer|basic)\s+\S`)
	// scheme://user:password@host, whatever the password holds, and
	// scheme://token@host.
	credentialURL = lazy.Regexp(`://[^\s/]*:\S*@|://[^\s/@:]{16,}@`)
	// What services put before theirs, so that they can be found.
	credentialStart = lazy.Regexp(`(?:^|[^A-Za-z0-9])(?:sk-|sk_|pk_|rk_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|hf_|npm_|eyJ)[A-Za-z0-9_.-]{4,}`)
	longRun         = lazy.Regexp(`[A-Za-z0-9]{24,}`)
	// -e NAME=value of docker and env.
	assignedWord = lazy.Regexp(`^(-e|--env=)?([A-Z_][A-Z0-9_]*)=.+`)
	optionForm   = lazy.Regexp(`^-(-[A-Za-z].*|[A-Za-z])$`)
	assignedForm = lazy.Regexp(`^(--?[A-Za-z][\w.-]*=)(?s:.+)$`)
	notInVars    = lazy.Regexp(`[^A-Z0-9]+`)
)

// credential says whether a text looks as if it held one.
func credential(word string) bool {
	return credentialInside().MatchString(word) || credentialURL().MatchString(word) || credentialStart().MatchString(word) || random(word)
}

// random finds what nobody would think of: long runs of letters and digits. The
// hash of an image is not a secret.
func random(word string) bool {
	if strings.Contains(word, "sha256:") {
		return false
	}
	return slices.ContainsFunc(longRun().FindAllString(word, -1), func(run string) bool {
		return strings.ContainsAny(run, "0123456789") && strings.ContainsFunc(run, func(r rune) bool { return r > '9' })
	})
}

// withheld says which part of a word must not be copied, by what is to stay of
// it; label is what the part is called after. before is the word before it.
func withheld(before, word string) (stays, label string, ok bool) {
	if m := assignedWord().FindStringSubmatch(word); m != nil {
		return m[1] + m[2] + "=", m[2], true
	}
	if m := assignedForm().FindStringSubmatch(word); m != nil {
		return m[1], m[1], credentialOption().MatchString(m[1]) || credential(word)
	}
	if optionForm().MatchString(before) && !strings.Contains(before, "=") && credentialOption().MatchString(before) && !optionForm().MatchString(word) {
		return "", before, word != ""
	}
	return "", "", credential(word)
}

// maskedWord is a word of a command line with an ellipsis in place of what looks like a
// credential; before is the word before it.
func maskedWord(before, word string) string {
	stays, _, ok := withheld(before, word)
	if !ok {
		return word
	}
	return stays + "…"
}

// redacted puts a variable of toolhost's environment in the place of what looks
// like a credential. The word comes back as YAML is to have it.
func (i *importer) redacted(server string, n int, before, word string) (text string, ok bool) {
	stays, label, ok := withheld(before, word)
	if !ok {
		return "", false
	}
	if label == "" {
		label = fmt.Sprintf("ARG_%d", n)
	}
	name := i.placeholder(server, label)
	i.warnf("server %s: argument %d looks like a credential and is not copied: set %s in toolhost's environment, or take the argument out and use secrets if the server takes a variable", quoted(server), n, name)
	return strings.ReplaceAll(stays, "$", "$$") + "${" + name + "}", true
}

// placeholder is a variable's name that no other argument and no server's secret has.
func (i *importer) placeholder(server, label string) string {
	name := strings.Trim(notInVars().ReplaceAllString(strings.ToUpper(server+"_"+label), "_"), "_")
	name = strings.TrimRight(name[:min(len(name), 60)], "_")
	if !callargs.VariableForm().MatchString(name) {
		name = "SERVER_" + name
	}
	unique := name
	for n := 2; i.placeholders[unique]; n++ {
		unique = fmt.Sprintf("%s_%d", name, n)
	}
	i.placeholders[unique] = true
	return unique
}
