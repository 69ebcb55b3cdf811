package api

// Reason is what an outcome was within its Status, or why a turn was aborted.
// Those named here are what programs branch on; there may be others.
type Reason string

// Reasons for an abort, of calls that are cancelled and of turns.
const (
	ReasonUser       Reason = "user" // also of a call that a human has denied
	ReasonParent     Reason = "parent"
	ReasonDisconnect Reason = "disconnect"
	ReasonTimeout    Reason = "timeout" // also of a call that nobody approved in time
	ReasonError      Reason = "error"   // also of a tool that reported one
	ReasonShutdown   Reason = "shutdown"
)

// Reasons for a timeout and for the end at a limit.
const (
	ReasonDeadline    Reason = "deadline"    // the timeout
	ReasonTotal       Reason = "total"       // the limit of a stream
	ReasonIdle        Reason = "idle"        // the limit of silence
	ReasonMemory      Reason = "memory"      // the call's own; of overloaded: the host had none for what the tool sent
	ReasonHostMemory  Reason = "hostMemory"  // all calls together had reached the host's total
	ReasonShareMemory Reason = "shareMemory" // the calls of its owner together had reached the owner's quota
	ReasonCPUTime     Reason = "cpuTime"     //
	ReasonPids        Reason = "pids"        //
	ReasonOutputTotal Reason = "outputTotal" // more output than is allowed in all, kept or not
	ReasonCollateral  Reason = "collateral"  //
)

// Reasons for a denial, beside ReasonUser and ReasonTimeout.
const (
	ReasonHeadless   Reason = OutcomeHeadless
	ReasonDismissed  Reason = OutcomeDismissed
	ReasonFailed     Reason = OutcomeFailed
	ReasonPolicy     Reason = "policy" // of start_failed: what the call is granted cannot be
	ReasonTurnBudget Reason = "turn_budget"
	ReasonRepeat     Reason = "repeat"
)

// Reasons for which a call is not started: what the host lacks, what has to be
// waited for, and what is wrong with the request.
const (
	ReasonStart         Reason = "start"  // the tool has failed to, by what it did
	ReasonServer        Reason = "server" // the program behind the tool has
	ReasonSlow          Reason = "slow"
	ReasonHost          Reason = "host" // the host could not make the process
	ReasonSandbox       Reason = "sandbox"
	ReasonAdapter       Reason = "adapter"
	ReasonSecrets       Reason = "secrets"
	ReasonLimits        Reason = "limits"
	ReasonKeep          Reason = "keep"
	ReasonDir           Reason = "dir"
	ReasonTool          Reason = "tool"
	ReasonCommand       Reason = "command"
	ReasonDescribe      Reason = "describe"
	ReasonNotFound      Reason = "not_found"      // as env(1) tells them apart: 127
	ReasonNotExecutable Reason = "not_executable" // 126
	ReasonAdmission     Reason = "admission"      // no slot was free
	ReasonData          Reason = "data"           // the tool's data were in use for too long
	ReasonSession       Reason = "session"        // no place beside the session's other calls
	ReasonQuota         Reason = "quota"          // its owner has as many calls, or as much of the record, as it may
	ReasonJournal       Reason = "journal"        // it cannot be written
	ReasonCall          Reason = "call"           // it is malformed, or names no tool
	ReasonSchema        Reason = "schema"         // its arguments do not fit
	ReasonArguments     Reason = "arguments"      // the tool says so of them, or they are no object
	ReasonSize          Reason = "size"           // they have too many bytes
)

// Reasons for which a call of a fleet is lost.
const (
	ReasonWorkerDied  Reason = "worker_died" // a later life of the worker, or of its machine, says so
	ReasonUnreachable Reason = "unreachable" // it was not heard any more
)

// Reasons for other ends.
const (
	ReasonPanic            Reason = "panic"
	ReasonOutput           Reason = "output" // it is not what the tool promises
	ReasonExit             Reason = "exit"
	ReasonSignal           Reason = "signal"
	ReasonLauncher         Reason = "launcher" // something else has ended what holds the tool
	ReasonSeccomp          Reason = "seccomp"  // the system call filter has killed
	ReasonSHA256           Reason = "sha256"   // the executable is not the one that was asked for
	ReasonProtocol         Reason = "protocol"
	ReasonConnectionClosed Reason = "connection closed"
	ReasonTooManyQuestions Reason = "too many questions at once"
)
