package escape

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// noInterface is an interface index that no machine has. The kernel asks for rights before it looks for the interface.
const noInterface = 0x7ffffff0

// configure tries to change links, addresses, routes and the rest, all of an interface that does not exist.
func (p *probe) configure() {
	for _, t := range []struct {
		name string
		kind uint16
		body []uint32
	}{
		{"RTM_SETLINK", unix.RTM_SETLINK, []uint32{0, noInterface, 0, 0}},
		{"RTM_NEWLINK", unix.RTM_NEWLINK, []uint32{0, noInterface, 0, 0}},
		{"RTM_DELLINK", unix.RTM_DELLINK, []uint32{0, noInterface, 0, 0}},
		{"RTM_NEWADDR", unix.RTM_NEWADDR, []uint32{unix.AF_INET | 32<<8, noInterface}},
		{"RTM_DELADDR", unix.RTM_DELADDR, []uint32{unix.AF_INET | 32<<8, noInterface}},
		{"RTM_NEWNEIGH", unix.RTM_NEWNEIGH, []uint32{unix.AF_INET, noInterface, 0}},
		{"RTM_DELNEIGH", unix.RTM_DELNEIGH, []uint32{unix.AF_INET, noInterface, 0}},
		{"RTM_NEWQDISC", unix.RTM_NEWQDISC, []uint32{0, noInterface, 0, 0, 0}},
		{"RTM_DELQDISC", unix.RTM_DELQDISC, []uint32{0, noInterface, 0, 0, 0}},
		{"RTM_NEWTFILTER", unix.RTM_NEWTFILTER, []uint32{0, noInterface, 0, 0, 0}},
		{"RTM_NEWNSID", unix.RTM_NEWNSID, []uint32{0}},
	} {
		errno := routeRequest(t.kind, t.body)
		permission := errno == unix.EPERM || errno == unix.EACCES || errno == unix.EAFNOSUPPORT
		p.add(Fact{Case: t.name, Errno: errnoName(errno), Escaped: !permission})
	}
}

// routeRequest sends one request and returns the kernel's answer to it, nil for success.
func routeRequest(kind uint16, body []uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var message []byte
	message = binary.NativeEndian.AppendUint32(message, uint32(unix.NLMSG_HDRLEN+4*len(body)))
	message = binary.NativeEndian.AppendUint16(message, kind)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	for _, word := range append([]uint32{1, 0}, body...) { // sequence number, port
		message = binary.NativeEndian.AppendUint32(message, word)
	}
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT) // the kernel answers within the send
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return unix.EBADMSG
	}
	if errno := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}
