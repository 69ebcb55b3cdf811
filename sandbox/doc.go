// Package sandbox confines calls, and starts their processes.
//
// A Policy is data: what a call may access. It is resolved (names checked, paths
// opened), planned against the Features of a Host, which were found by trials, and
// started. If the host cannot enforce a policy there is no Plan, but an error that
// names what is missing and the remedy. A Plan's Receipt lists what it enforces; a
// start that cannot enforce all of it fails.
//
// Each call has a launcher (sandbox/launcher), PID 1 of the call's PID
// namespace, so that its end is the end of every process of the call. Launchers
// are forked by a zygote, a small child process of the host. Both are one
// program, embedded here and executed from a sealed memfd (memfd_create(2)):
// what runs is what was built, and no tool can overwrite it (CVE-2019-5736).
//
// The package needs Linux 5.14.
package sandbox
