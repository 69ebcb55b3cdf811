package exit

// Start is the exit code of a call that could not start, by the reason that its
// result gives: a mistake of the user's in name or configuration (also a binary
// that is not a tool), a failure of the tool, or one of the host.
func Start(reason string) int {
	switch reason {
	case "start", "tool", "not_executable", "limits", "dir", "command", "sha256", "policy", "secrets", "keep":
		return Usage
	case "not_found", "server", "slow", "seccomp":
		return Failed
	}
	return Host
}
