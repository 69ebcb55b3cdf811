package api

// Reason refines the Status of a call, or says why a turn was aborted. Programs
// may branch on the constants below; other values occur.
type Reason string

// Reasons for the abort of a call or turn.
const (
	ReasonUser       Reason = "user" // also of a call that a human denied
	ReasonParent     Reason = "parent"
	ReasonDisconnect Reason = "disconnect"
	ReasonTimeout    Reason = "timeout" // also of a call that nobody approved in time
	ReasonError      Reason = "error"   // also of a tool that reported one
	ReasonShutdown   Reason = "shutdown"
)

// Reasons for a timeout or an exceeded limit.
const (
	ReasonDeadline    Reason = "deadline"    // the timeout
	ReasonTotal       Reason = "total"       // the total time of a stream
	ReasonIdle        Reason = "idle"        // the silence limit
	ReasonMemory      Reason = "memory"      // the call's memory; of overloaded: the host had no memory for the tool's output
	ReasonHostMemory  Reason = "hostMemory"  // all calls together reached the host's total
	ReasonShareMemory Reason = "shareMemory" // the calls of its owner together reached the owner's quota
	ReasonCPUTime     Reason = "cpuTime"     // the call's CPU time
	ReasonPids        Reason = "pids"        // the call's processes and threads
	ReasonOutputTotal Reason = "outputTotal" // the call's total output, kept or not
	ReasonCollateral  Reason = "collateral"  // the process was killed for another call that it served
)

// Reasons for a denial, in addition to ReasonUser and ReasonTimeout.
const (
	ReasonHeadless   Reason = OutcomeHeadless
	ReasonDismissed  Reason = OutcomeDismissed
	ReasonFailed     Reason = OutcomeFailed
	ReasonPolicy     Reason = "policy" // of start_failed: a grant is invalid, or not possible on this host
	ReasonTurnBudget Reason = "turn_budget"
	ReasonRepeat     Reason = "repeat"
)

// Reasons for a call not to start: the host lacks something, a wait took too long,
// or the request is invalid.
const (
	ReasonStart         Reason = "start"  // the tool failed to start by its own doing
	ReasonServer        Reason = "server" // the program behind the tool failed
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
	ReasonNotFound      Reason = "not_found"      // exit status 127 of env(1)
	ReasonNotExecutable Reason = "not_executable" // exit status 126 of env(1)
	ReasonAdmission     Reason = "admission"      // no slot was free
	ReasonData          Reason = "data"           // the tool's data were in use for too long
	ReasonSession       Reason = "session"        // the session has as many calls as it may have
	ReasonQuota         Reason = "quota"          // the owner's quota of calls or journal space is used up
	ReasonJournal       Reason = "journal"        // the journal cannot be written
	ReasonCall          Reason = "call"           // the call is malformed, or names no known tool
	ReasonSchema        Reason = "schema"         // the arguments do not match the tool's schema
	ReasonArguments     Reason = "arguments"      // the tool refused the arguments, or they are not an object
	ReasonSize          Reason = "size"           // the arguments are too long
)

// Reasons for the loss of a fleet's call.
const (
	ReasonWorkerDied  Reason = "worker_died" // the worker died: it, or its machine, has since restarted
	ReasonUnreachable Reason = "unreachable" // the worker was no longer heard
)

// Other reasons.
const (
	ReasonPanic            Reason = "panic"
	ReasonOutput           Reason = "output" // the output is not what the tool declares
	ReasonExit             Reason = "exit"
	ReasonSignal           Reason = "signal"
	ReasonLauncher         Reason = "launcher" // something else ended the tool's launcher
	ReasonSeccomp          Reason = "seccomp"  // the system call filter killed a process
	ReasonSHA256           Reason = "sha256"   // the executable does not have the requested hash
	ReasonProtocol         Reason = "protocol"
	ReasonConnectionClosed Reason = "connection closed"
	ReasonTooManyQuestions Reason = "too many questions at once"
)
