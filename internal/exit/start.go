package exit

// Start is the exit code of a call that could not start, by the reason that its
// result gives: what the user named or configured wrongly, which a binary that is
// no tool is, a tool that failed by itself, or a host that could not.
func Start(reason string) int {
	switch reason {
	case "start", "tool", "not_executable", "limits", "dir", "command", "sha256", "policy", "secrets", "keep":
		return Usage
	case "not_found", "server", "slow", "seccomp":
		return Failed
	}
	return Host
}
