package budget

import "strings"

// Operations that toolhost itself carries out; see [ForOperation].
const (
	OpCall      = "Call"
	OpDescribe  = "Describe"
	OpHandshake = "Handshake"
	OpStatus    = "Status"
	OpEscalate  = "Escalate"
)

// ForOperation finds the standard profile of an operation. It knows toolhost's
// own operations and the RPC methods of agent hosts, by method name ("InvokeTool")
// or by full gRPC name ("/pkg.Service/InvokeTool").
func ForOperation(op string) (Profile, bool) {
	return Standard(profileOf(op[strings.LastIndexByte(op, '/')+1:]))
}

func profileOf(method string) string {
	switch method {
	case OpCall, "InvokeTool":
		return ToolCall
	case OpDescribe, "DescribeTool", "RejectHandoff":
		return MessageRoute
	case OpHandshake, "RegisterAgent", "DeregisterAgent":
		return Registration
	case OpStatus, "GetTaskStatus":
		return WorkflowStatus
	case OpEscalate:
		return HITLEscalate
	case "Heartbeat":
		return Heartbeat
	case "SubmitTask", "CancelTask":
		return TaskSubmit
	case "SubmitProposal":
		return NegotiationOpen
	case "SubmitVote", "WaitForDecision":
		return NegotiationVote
	case "GetDecision":
		return NegotiationDecision
	case "RequestHandoff", "AcceptHandoff":
		return Handoff
	}
	return ""
}
