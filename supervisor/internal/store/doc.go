// Package store keeps copies of executables in a folder that only we can
// write, each under the SHA-256 of its bytes: what was hashed is what is
// executed, with no window between, whatever happens to the original.
//
// A folder may serve any number of processes of one user at once. It holds:
//
//	<sha256>     a copy, mode 0555, never modified; its mtime is its last use
//	id/<identity> a symbolic link to the copy of a file of this identity
//	tmp-*        a copy in the making
//
// The folder itself is locked (flock(2)) to publish, touch and remove copies.
//
// A remembered identity that is wrong (see identity) makes an earlier version
// of a file run, but under that version's own hash: a hash never names other
// bytes than those that run.
package store
