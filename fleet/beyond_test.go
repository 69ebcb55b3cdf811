package fleet_test

// beyond is why a test cannot pass where a worker makes the calls, and what its output shows
// of that. A race may let it pass sometimes.
type beyond struct {
	why, shows string
	sometimes  bool
}

var (
	inGo       = beyond{why: "a worker refuses it by name", shows: "no worker can do this: a command made of Go functions"}
	unlocked   = beyond{why: "a worker refuses it by name", shows: "no worker can do this: a lock on data of this machine (data)"}
	bare       = beyond{why: "a worker refuses it by name", shows: "no worker can do this: no sandbox (tier none)"}
	prestarted = beyond{why: "no process waits for a call that a worker makes", shows: "prestart_test.go"}
	behind     = beyond{why: "what a worker has made before the start ends behind the call's result", shows: "are left", sometimes: true}
	hangs      = "test timed out" // it waits for what never comes
)

// beyondWorkers are the tests of other packages that cannot pass where a worker makes the
// calls: they use what a worker refuses by name (docs/fleet.md), or see what is not sent.
var beyondWorkers = map[string]map[string]beyond{
	"supervisor": {
		"TestOutcomes/too_large":                  {why: "a worker refuses it by name", shows: "no worker can do this: a call of more than 256 KiB"},
		"TestOOMOfAShare":                         {why: "a worker refuses it by name", shows: "no worker can do this: a quota of calls, memory or CPU"},
		"TestWrongShares":                         {why: "a worker refuses it by name", shows: "no worker can do this: a quota of calls, memory or CPU"},
		"TestAPoolLeavesSlotsToOthers":            {why: "a worker refuses it by name: a pool (running)", shows: hangs},
		"TestAFullPoolNamesItsSetting":            {why: "a worker refuses it by name: a pool (running)", shows: hangs},
		"TestWhatIsLeftAfterTheWaitForASlot":      {why: "the slot is at the worker", shows: "0 calls have a slot"},
		"TestAReaderThatTakesNothing":             {why: "a worker refuses it by name", shows: "stdin, stdout or stderr of the caller's"},
		"TestKeepRefusesWhatMakesNoSense":         {why: "a worker refuses it by name", shows: "no worker can do this: files taken out of the workspace"},
		"TestCommandTool":                         inGo,
		"TestCommandToolChecksItsArguments":       inGo,
		"TestStoppedWhileStarting":                inGo,
		"TestCommandTakesAllTasks":                {why: "a worker refuses it by name: a command made of Go functions", shows: "policy_violation"},
		"TestCommandToolKeepsPartialContent":      {why: "a worker refuses it by name: a command made of Go functions", shows: hangs},
		"TestALockKeepsCallsOfAllHostsApart":      unlocked,
		"TestAKeptProcessGivesUpTheLock":          unlocked,
		"TestCallsOfAKeptProcessLeaveTheLock":     unlocked,
		"TestKeptProcessesOfShares":               {why: "a worker refuses it by name", shows: "no worker can do this: a kept process of one share alone (keep)"},
		"TestAKeptProcessHasOneLockAndOnePolicy":  unlocked,
		"TestAFailureOfTheHostSparesTheTool":      unlocked,
		"TestCallsThatWaitForALockAreBounded":     unlocked,
		"TestASharedLockIsLeftForOthers":          unlocked,
		"TestAHastyDescribeDoesNotRest":           bare,
		"TestDescribesAreShared":                  {why: "a worker refuses it by name: no sandbox (tier none)", shows: hangs},
		"TestDescribesTakeNoSlots":                {why: "a worker refuses it by name: no sandbox (tier none)", shows: hangs},
		"TestGrantsNeedASandbox":                  bare,
		"TestBadSecrets":                          bare,
		"TestNoCgroupLimits":                      bare,
		"TestSpillOfWhatIsKeptWhole":              inGo,
		"TestCurrent":                             {why: "what a call's processes use at present is not sent", shows: hangs},
		"TestUnkillable":                          {why: "when what a worker could not kill has ended is not sent", shows: hangs},
		"TestACallWaitsForItsRecord":              behind,
		"TestAnAbortBesideTheRecordLeavesNothing": behind,

		"TestAPrestartedProcessServesOneCall":               prestarted,
		"TestAPrestartedProcessReachesNothingBeforeItsCall": {why: prestarted.why, shows: "networkahead_test.go"},
		"TestACallBeforeItsNetworkIsServed":                 {why: prestarted.why, shows: "networkearly_test.go"},
		"TestManyCallersOfOnePrestarted":                    prestarted,
		"TestWhyNothingIsPrestarted":                        prestarted,
		"TestPrestartReplacesWhatWasDeclared":               prestarted,
		"TestAPrestartedProcessDies":                        prestarted,
		"TestWhatIsDoneBeforeTheCall":                       prestarted,
		"TestPrestartBeginsWithTheFirstCall":                prestarted,
		"TestAPrestartedProcessFitsItsCall":                 prestarted,
		"TestPrestartBudget":                                prestarted,
		"TestEndIdleWhileOneIsStarted":                      {why: prestarted.why, shows: hangs},

		"TestASandboxWaitsForTheNextCall": {why: "a worker refuses it by name: stdin of the caller's", shows: "policy_violation"},
		"TestASandboxFitsItsCall":         unlocked,
		"TestASandboxAndMountsThatCome":   {why: "what a call's processes use at present is not sent", shows: hangs},
	},
}
