// Package stack has goroutines that will need a deep stack begin with one.
package stack

// Deep grows the stack of the calling goroutine to what a call of a database or of
// a schema's check needs. Without it Go doubles a goroutine's stack three times on
// the way down, and each time adjusts all frames so far.
//
//go:noinline
func Deep() {
	var room [9 << 10]byte
	touch(room[:])
}

//go:noinline
func touch(b []byte) { b[0] = 1 }
