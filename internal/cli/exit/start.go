package exit

import "github.com/toolhost/toolhost/api"

// Start is the exit code of a call that could not start, by the reason that its
// result gives: a mistake of the user's in name or configuration (also a binary
// that is not a tool), a failure of the tool, or one of the host.
func Start(reason api.Reason) int {
	switch reason {
	case api.ReasonStart, api.ReasonTool, api.ReasonNotExecutable, api.ReasonLimits, api.ReasonDir, api.ReasonCommand,
		api.ReasonSHA256, api.ReasonPolicy, api.ReasonSecrets, api.ReasonKeep:
		return Usage
	case api.ReasonNotFound, api.ReasonServer, api.ReasonSlow, api.ReasonSeccomp:
		return Failed
	}
	return Host
}
