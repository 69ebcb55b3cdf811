// Package cgroup puts the process tree of each call into its own control group:
// with limits from birth, a kill that no descendant escapes, and usage after death.
//
// It works the same on three layouts, which [Root.Mode] names:
//
//   - v2: everything in one cgroup2 hierarchy.
//   - hybrid: limits in v1 hierarchies, birth, listing, killing and CPU time in
//     the host's cgroup2 mount.
//   - v1: as hybrid, but through a detached cgroup2 mount of our own.
//
// Below the base (our own cgroup, or the delegated one) a Root makes one
// directory toolhost-<pid>-<random> in each hierarchy it uses and holds a flock
// on it for its whole life; that lock, which dies with the process, is how
// [Root.Sweep] tells a dead owner from a live one. Each call is a leaf
// c-<name> in it, used once: after cgroup.kill newer kernels kill every process
// cloned into a leaf at birth.
//
// Processes are only ever listed and signalled through cgroup2, never through
// v1 files: there a thread of ours may be listed.
//
// Linux 5.14 or newer is needed (cgroup.kill).
//
// Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ in the Linux
// tree, cgroups(7), and https://systemd.io/CGROUP_DELEGATION/.
package cgroup
