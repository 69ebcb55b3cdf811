package wire

// Modes of the launcher program, its first argument; AwaitMap is the zygote's
// second one where it was born in a user namespace that is not mapped yet.
const (
	ModeZygote  = "zygote"
	ModeTrial   = "trial"
	ModeCommand = "command"
	AwaitMap    = "await-map"
)

// TrialMark is a file that is only in the root of a trial call.
const TrialMark = "/.toolhost-trial-call"

// Steps of a start that the host tells apart. Those from StepStage on are of what
// the call is granted, and followed by a path.
const (
	StepReceive  = "take the files of a call"
	StepClone    = "clone"
	StepExecute  = "execute"
	StepLimits   = "set resource limits"
	StepLandlock = "apply Landlock"
	StepStage    = "clone the tree of "
	StepMap      = "map the owner of "
	StepShow     = "show "
	StepProtect  = "protect "
)
