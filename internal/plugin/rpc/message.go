package rpc

import (
	"encoding/binary"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

const (
	// prefixBytes stand before each message: whether it is compressed, and its length.
	prefixBytes = 5
	// messageCost is about what a message takes beside its bytes while it waits.
	messageCost = 64
)

// encode is a message with its prefix.
func encode(m proto.Message) ([]byte, error) {
	size := proto.Size(m)
	wire, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(make([]byte, prefixBytes, prefixBytes+size), m)
	if err != nil {
		return nil, Errorf(codes.Internal, "cannot encode the message: %v", err)
	}
	binary.BigEndian.PutUint32(wire[1:prefixBytes], uint32(len(wire)-prefixBytes))
	return wire, nil
}

// assembly is the message that is being received.
type assembly struct {
	prefix [prefixBytes]byte
	have   int // of the prefix
	body   []byte
	length int
}

// empty: nothing of a further message has come.
func (a *assembly) empty() bool { return a.have == 0 }

// add takes what belongs to the message from data; whole is the message when it
// is complete, and then the assembly is ready for the next one.
func (a *assembly) add(data []byte, limit int) (rest, whole []byte, err error) {
	if a.have < prefixBytes {
		n := copy(a.prefix[a.have:], data)
		a.have += n
		data = data[n:]
		if a.have < prefixBytes {
			return nil, nil, nil
		}
		if err := a.begin(limit); err != nil {
			return nil, nil, err
		}
	}
	n := min(len(data), a.length-len(a.body))
	a.grow(n)
	a.body = append(a.body, data[:n]...)
	if len(a.body) < a.length {
		return nil, nil, nil
	}
	whole = a.body
	*a = assembly{}
	return data[n:], whole, nil
}

func (a *assembly) begin(limit int) error {
	length := binary.BigEndian.Uint32(a.prefix[1:])
	switch {
	case a.prefix[0] != 0:
		return Errorf(codes.Internal, "grpc: the message is compressed, which was not offered")
	case uint64(length) > uint64(limit):
		return Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", length, limit)
	}
	a.length = int(length)
	a.body = []byte{} // a message without bytes is one, too
	return nil
}

// grow doubles the room, and makes none beyond the message's end: its length is
// only what the other side has claimed.
func (a *assembly) grow(n int) {
	if cap(a.body)-len(a.body) >= n {
		return
	}
	room := min(a.length, max(2*cap(a.body), len(a.body)+n))
	a.body = slices.Grow(a.body, room-len(a.body))
}

// cost is what taking data costs in memory: its bytes, and what each message is
// that begins in it.
func (a *assembly) cost(data []byte) int64 {
	begun, have, left := int64(0), a.have, a.length-len(a.body)
	prefix := a.prefix
	for rest := data; len(rest) > 0; {
		if have < prefixBytes {
			n := copy(prefix[have:], rest)
			if have == 0 {
				begun++
			}
			have, rest = have+n, rest[n:]
			left = int(binary.BigEndian.Uint32(prefix[1:]))
		}
		if have == prefixBytes {
			n := min(left, len(rest))
			left, rest = left-n, rest[n:]
			if left == 0 {
				have = 0
			}
		}
	}
	return int64(len(data)) + begun*messageCost
}
