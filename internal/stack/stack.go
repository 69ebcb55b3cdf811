// Package stack has goroutines that will need a deep stack begin with one: Go doubles
// that of a goroutine on its way down, and each time adjusts all frames so far, which
// takes 10 µs. The collector makes smaller again what is not used.
package stack

// Shallow, Middle and Deep give the calling goroutine a stack of 16, 32 or 64 KiB.

//go:noinline
func Shallow() {
	var room [9 << 10]byte
	touch(room[:])
}

//go:noinline
func Middle() {
	var room [18 << 10]byte
	touch(room[:])
}

// Deep is enough for a commit of the journal.
//
//go:noinline
func Deep() {
	var room [36 << 10]byte
	touch(room[:])
}

//go:noinline
func touch(b []byte) { b[0] = 1 }
