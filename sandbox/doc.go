// Package sandbox says where a call runs, and confines it there.
//
// A Policy is data: what a call may touch. It is resolved (names checked, paths
// found), planned against the Features that a Host was found to have by really
// trying them, and started. A Plan that cannot be enforced does not exist: the
// error names what is missing and the remedy. What a Plan enforces is in its
// Receipt; a start that could not enforce all of it fails.
//
// Each call has a launcher (sandbox/launcher), PID 1 of the call's PID
// namespace, so that its end is the end of every process of the call. Launchers
// are forked by a zygote, a small process of the host's own. Both are one
// program, embedded here and executed from a sealed memfd (memfd_create(2)):
// what runs is what was built, and no tool can overwrite it (CVE-2019-5736).
//
// Needs Linux 5.14.
package sandbox
