package wire

// Kinds of request to the zygote, the first byte of each.
const (
	// RequestBirth is followed by a Birth.
	RequestBirth byte = 'b'
	// RequestConnect is followed by the name of a socket. With it come a socket
	// for the answer (KindReady with the connection, or KindFailed) and the
	// folder of the one to connect to.
	RequestConnect byte = 'c'
)
