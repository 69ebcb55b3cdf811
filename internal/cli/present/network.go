package present

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/terminal"
)

// Network says what a call with network grants reached and what it was refused, a line
// each. Of other calls there is nothing to say.
func Network(n *api.Network) (lines []string) {
	if n == nil || n.Mode != "grants" {
		return nil
	}
	for _, f := range n.Flows {
		lines = append(lines, "reached "+flow(f))
	}
	for _, f := range n.Refused {
		lines = append(lines, fmt.Sprintf("refused %s, %s", Refusal(f), count(int(f.Count), "time", "times")))
	}
	if n.MoreFlows > 0 || n.MoreRefused > 0 {
		lines = append(lines, fmt.Sprintf("left out: %d reached, %d refused", n.MoreFlows, n.MoreRefused))
	}
	if n.Unreachable > 0 {
		lines = append(lines, "refused other ports or addresses, "+count(int(n.Unreachable), "time", "times"))
	}
	if n.Limit != "" {
		lines = append(lines, "passed the limit "+n.Limit+", and nothing more from there on")
	}
	if n.Error != "" {
		lines = append(lines, "not complete: "+n.Error)
	}
	for i := range lines {
		lines[i] = terminal.OneLine(lines[i])
	}
	return lines
}

func flow(f api.NetworkFlow) string {
	said := fmt.Sprintf("%s port %d: %s, %s sent, %s received",
		strings.TrimSpace(f.Name+" "+f.Address), f.Port, count(int(f.Connections), "connection", "connections"), size(f.SentBytes), size(f.ReceivedBytes))
	if f.Via != "" {
		said += ", by a " + f.Via
	}
	if f.Error != "" {
		said += ": " + f.Error
	}
	return said
}

// Refusal says what was refused, and why.
func Refusal(f api.NetworkRefusal) string {
	what := strings.TrimSpace(f.Name + " " + f.Address)
	if f.Port != 0 {
		what += fmt.Sprintf(" port %d", f.Port)
	}
	return what + ": " + f.Why
}
