package terminal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/api"
)

// Question is what is shown before the prompt: tool, arguments and what the
// call may touch, with control characters made visible. Nothing of it can pass
// for a line of ours. The middle of long values is left out, with a note.
func Question(q api.Interaction) string {
	text, _ := question(q, cut)
	return text
}

// question writes prompt and arguments as shorten has them; short says that
// nothing of them is left out.
func question(q api.Interaction, shorten func(string) string) (text string, short bool) {
	var b strings.Builder
	if q.Request != nil && q.Request.URL != "" {
		return opening(q), true
	}
	shown, arguments := shorten(q.Prompt), shorten(string(q.Arguments))
	fmt.Fprintln(&b, Asking(q, OneLine(shown)))
	if IsApproval(q) {
		fmt.Fprintf(&b, "  tool       %s\n", OneLine(q.Tool))
	}
	if len(q.Arguments) > 0 {
		fmt.Fprintf(&b, "  arguments  %s\n", OneLine(arguments))
	}
	if IsApproval(q) {
		fmt.Fprintf(&b, "  may touch  %s\n", touches(q.Policy))
	}
	return b.String(), shown == q.Prompt && arguments == string(q.Arguments)
}

// Asking is a question's words behind who asks: a tool's are not to pass for the host's.
func Asking(q api.Interaction, words string) string {
	switch {
	case q.Tool != "" && q.Host:
		return fmt.Sprintf("About the tool %s: %s", OneLine(q.Tool), words)
	case q.Tool != "" && !IsApproval(q):
		return fmt.Sprintf("The tool %s asks: %s", OneLine(q.Tool), words)
	}
	return words
}

// opening asks whether an address will be opened. All of it is shown.
func opening(q api.Interaction) string {
	message := strings.TrimPrefix(q.Prompt[strings.Index(q.Prompt, "\n")+1:], q.Request.URL+"\n")
	return fmt.Sprintf("%s asks you to open an address, for the tool %s\n  it says    %s\n  address    %s\n  Open it yourself if you trust it: nothing opens it for you. Yes says that you will.\n",
		OneLine(q.Request.Server), OneLine(q.Tool), OneLine(cut(message)), OneLine(q.Request.URL))
}

// whole leaves nothing out.
func whole(s string) string { return s }

// maxShown bounds the characters that are shown of a text: half of them are its
// beginning, and half its end, where a model might hide what matters.
const maxShown = 2000

// What cut says comes first, where no text can say it in its place.
func cut(s string) string {
	r := []rune(s)
	if len(r) <= maxShown {
		return s
	}
	const half = maxShown / 2
	return fmt.Sprintf("(%d of %d characters are left out at […]) %s […] %s", len(r)-2*half, len(r), string(r[:half]), string(r[len(r)-half:]))
}

// touches says in one line what a policy grants.
func touches(p *api.Policy) string {
	switch {
	case p == nil:
		return "what the host's policy grants"
	case p.Tier == "none":
		return "everything that you may: it has no sandbox"
	}
	var parts []string
	for _, list := range []struct {
		verb  string
		paths []string
	}{{"write ", p.Write}, {"read ", p.Read}} {
		for _, path := range list.paths {
			parts = append(parts, list.verb+OneLine(path))
		}
	}
	if p.Network == "host" {
		parts = append(parts, "the network")
	}
	for _, grant := range p.Grants {
		parts = append(parts, "reach "+OneLine(grant))
	}
	if len(parts) == 0 {
		return "nothing of yours"
	}
	return strings.Join(parts, ", ")
}

// IsApproval says whether a call waits for an answer, which is shown with the question.
func IsApproval(q api.Interaction) bool {
	return !q.Host && (q.Kind == api.KindApproval || q.Kind == api.KindConfirm)
}

// lasting says whether a yes can be for the rest of the turn.
func lasting(q api.Interaction) bool { return q.Kind == api.KindApproval && !q.Host }

// choices are what a yes or no is answered by. What destroys something is
// confirmed each time. Whatever is not shown whole can be.
func choices(q api.Interaction, short bool) string {
	more := ""
	if !short {
		more = "/v"
	}
	switch {
	case lasting(q):
		return "allow? [y/n/a" + more + "]"
	case q.Kind == api.KindApproval:
		return "allow? [y/n" + more + "]"
	case q.Kind == api.KindConfirm:
		return "destroys things: allow? [y/n" + more + "]"
	}
	return "[y/n" + more + "]"
}

const explainTwo = "please answer y (yes) or n (no)"

// explain says what there is to answer.
func explain(q api.Interaction, short bool) string {
	list := []string{"y (yes)", "n (no)"}
	if lasting(q) {
		list = append(list, "a (yes, for the rest of this turn)")
	}
	if !short {
		list = append(list, "v (show all of it, and ask again)")
	}
	last := len(list) - 1
	return "please answer " + strings.Join(list[:last], ", ") + " or " + list[last]
}

// errShow is not an answer: all of the question is to be shown.
var errShow = errors.New("bug: what is left out was asked for, and not shown")

// parse reads the answer to a yes or no; false for anything else.
func parse(text string, q api.Interaction, short bool) (a api.Answer, ok bool, err error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "n", "no":
		return api.Answer{}, true, nil
	case "y", "yes":
		return api.Answer{Approve: true}, true, nil
	case "a", "always":
		always := lasting(q)
		return api.Answer{Approve: always, Always: always}, always, nil
	case "v", "view":
		if !short {
			return api.Answer{}, false, errShow
		}
	}
	return api.Answer{}, false, nil
}
