package wire

// Kinds of request to the zygote, the first byte of each.
const (
	// RequestBirth is followed by a Birth.
	RequestBirth byte = 'b'
	// RequestConnect is followed by the name of a socket. With it come the
	// socket's folder and a socket for the answer: KindReady with the
	// connection, or KindFailed.
	RequestConnect byte = 'c'
)
