package rpc

// inWindow is what the other side may still send, of a stream or a connection.
type inWindow struct {
	left int64 // it may send
	owed int64 // may be given back to it
}

// use is false if it has sent more than it may.
func (w *inWindow) use(n int64) bool {
	w.left -= n
	return w.left >= 0
}

// credit gives back what was taken; grant is the update to send, 0 for none yet:
// small ones wait for more.
func (w *inWindow) credit(n int64) (grant uint32) {
	if w.owed += n; w.owed < windowBytes/4 {
		return 0
	}
	grant = uint32(w.owed)
	w.left += w.owed
	w.owed = 0
	return grant
}
