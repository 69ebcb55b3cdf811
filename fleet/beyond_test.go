package fleet_test

// beyond is why a test cannot pass where a worker makes the calls, and what its output shows
// of that.
type beyond struct{ why, shows string }

var (
	inGo       = beyond{"a worker refuses it by name", "no worker can do this: a command made of Go functions"}
	unlocked   = beyond{"a worker refuses it by name", "no worker can do this: a lock on data of this machine (data)"}
	bare       = beyond{"a worker refuses it by name", "no worker can do this: no sandbox (tier none)"}
	prestarted = beyond{"no process waits for a call that a worker makes", "prestart_test.go"}
	behind     = beyond{"what a worker has made before the start ends behind the call's result", "are left"}
	hangs      = "test timed out" // it waits for what never comes
)

// beyondWorkers are the tests of other packages that cannot pass where a worker makes the
// calls: they use what a worker refuses by name (docs/fleet.md), or see what is not sent.
var beyondWorkers = map[string]map[string]beyond{
	"supervisor": {
		"TestOutcomes/too_large":                  {"a worker refuses it by name", "no worker can do this: a call of more than 256 KiB"},
		"TestOOMOfAShare":                         {"a worker refuses it by name", "no worker can do this: a quota of running calls, memory or CPU"},
		"TestAPoolLeavesSlotsToOthers":            {"a worker refuses it by name: a pool (running)", hangs},
		"TestAReaderThatTakesNothing":             {"a worker refuses it by name", "stdin, stdout or stderr of the caller's"},
		"TestKeepRefusesWhatMakesNoSense":         {"a worker refuses it by name", "no worker can do this: files taken out of the workspace"},
		"TestCommandTool":                         inGo,
		"TestCommandToolChecksItsArguments":       inGo,
		"TestStoppedWhileStarting":                inGo,
		"TestCommandTakesAllTasks":                {"a worker refuses it by name: a command made of Go functions", "policy_violation"},
		"TestCommandToolKeepsPartialContent":      {"a worker refuses it by name: a command made of Go functions", hangs},
		"TestALockKeepsCallsOfAllHostsApart":      unlocked,
		"TestAKeptProcessGivesUpTheLock":          unlocked,
		"TestCallsOfAKeptProcessLeaveTheLock":     unlocked,
		"TestKeptProcessesOfShares":               {"a worker refuses it by name", "no worker can do this: a kept process of one share alone (keep)"},
		"TestAKeptProcessHasOneLockAndOnePolicy":  unlocked,
		"TestAFailureOfTheHostSparesTheTool":      unlocked,
		"TestCallsThatWaitForALockAreBounded":     unlocked,
		"TestASharedLockIsLeftForOthers":          unlocked,
		"TestAHastyDescribeDoesNotRest":           bare,
		"TestDescribesAreShared":                  {"a worker refuses it by name: no sandbox (tier none)", hangs},
		"TestDescribesTakeNoSlots":                {"a worker refuses it by name: no sandbox (tier none)", hangs},
		"TestGrantsNeedASandbox":                  bare,
		"TestBadSecrets":                          bare,
		"TestNoCgroupLimits":                      bare,
		"TestCurrent":                             {"what a call's processes use at present is not sent", hangs},
		"TestUnkillable":                          {"when what a worker could not kill has ended is not sent", hangs},
		"TestACallWaitsForItsRecord":              behind,
		"TestAnAbortBesideTheRecordLeavesNothing": behind,

		"TestAPrestartedProcessServesOneCall":               prestarted,
		"TestAPrestartedProcessReachesNothingBeforeItsCall": {prestarted.why, "networkahead_test.go"},
		"TestManyCallersOfOnePrestarted":                    prestarted,
		"TestWhyNothingIsPrestarted":                        prestarted,
		"TestPrestartReplacesWhatWasDeclared":               prestarted,
		"TestAPrestartedProcessDies":                        prestarted,
		"TestWhatIsDoneBeforeTheCall":                       prestarted,
		"TestPrestartBeginsWithTheFirstCall":                prestarted,
		"TestAPrestartedProcessFitsItsCall":                 prestarted,
		"TestPrestartBudget":                                prestarted,

		"TestASandboxWaitsForTheNextCall": {"a worker refuses it by name: stdin of the caller's", "policy_violation"},
		"TestASandboxFitsItsCall":         unlocked,
		"TestASandboxAndMountsThatCome":   {"what a call's processes use at present is not sent", hangs},
	},
}
