// Package sandbox says where a call runs. It starts each tool below a launcher
// that is PID 1 of a new PID namespace, so that the end of the launcher is the
// end of every process of the call, and reports in a Receipt what was really
// enforced.
//
// The launcher (sandbox/launcher) is embedded and executed from a sealed
// memfd (memfd_create(2)): what runs is what was built, and no tool can
// overwrite it (CVE-2019-5736).
//
// This tier is TierNone: processes are contained and always killable, but
// files, network and system calls are those of the caller.
package sandbox
