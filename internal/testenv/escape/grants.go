package escape

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// grants says that a call cannot widen what it was granted of the network: group N. Each is refused with grants and without.
func grants(p *probe) {
	if p.env.HostNetwork || !p.boxed {
		p.info("grants", "the network is the host's")
		return
	}
	p.routes()
	p.takePorts()
	p.settings()
	p.borrow()
}

// routes tries real changes: a default route, a route to a metadata service, one more address, and none of the call's own.
func (p *probe) routes() {
	const lo, local, host, fromLocal, static = 1, 2, 254, 255, 4
	message := func(bits uint32, kind uint32, attributes ...uint32) []uint32 {
		return append([]uint32{unix.AF_INET | bits<<8, fromLocal | static<<8 | host<<16 | kind<<24, 0}, attributes...)
	}
	out := []uint32{8 | unix.RTA_OIF<<16, lo}
	to := func(a, b, c, d byte) []uint32 {
		return append([]uint32{8 | unix.RTA_DST<<16, binary.NativeEndian.Uint32([]byte{a, b, c, d})}, out...)
	}
	for _, t := range []struct {
		name string
		kind uint16
		body []uint32
	}{
		{"a default route", unix.RTM_NEWROUTE, message(0, local, out...)},
		{"a route to 169.254.169.254", unix.RTM_NEWROUTE, message(32, local, to(169, 254, 169, 254)...)},
		{"the end of the call's routes", unix.RTM_DELROUTE, message(15, local, to(198, 18, 0, 0)...)},
		{"one more address", unix.RTM_NEWADDR, []uint32{unix.AF_INET | 32<<8, lo, 8 | unix.IFA_LOCAL<<16, 0x0100007f}},
		{"a rule", unix.RTM_NEWRULE, []uint32{unix.AF_INET, 0, 0}},
	} {
		p.refused(t.name, routeRequest(t.kind, t.body))
	}
}

// takePorts tries to have the name server's port, and granted ones, beside those who have them.
func (p *probe) takePorts() {
	for _, t := range []struct {
		name string
		kind int
		at   unix.SockaddrInet4
	}{
		{"the name server's port", unix.SOCK_DGRAM, unix.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 53}}},
		{"the name server's port on TCP", unix.SOCK_STREAM, unix.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 53}}},
		{"a granted port", unix.SOCK_STREAM, unix.SockaddrInet4{Port: 443, Addr: [4]byte{198, 18, 1, 1}}},
		{"all of port 443", unix.SOCK_STREAM, unix.SockaddrInet4{Port: 443}},
	} {
		fd, err := unix.Socket(unix.AF_INET, t.kind|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			err = unix.Bind(fd, &t.at)
			_ = unix.Close(fd)
		}
		p.refused(t.name, err)
	}
}

// settings tries the namespace's own that would open more, and options that take privileges.
func (p *probe) settings() {
	for _, path := range []string{
		"ip_unprivileged_port_start", "ip_nonlocal_bind", "ip_forward", "conf/all/route_localnet", "conf/lo/accept_local", "ping_group_range",
	} {
		file, err := os.OpenFile("/proc/sys/net/ipv4/"+path, os.O_WRONLY, 0)
		if err == nil {
			_ = file.Close()
		}
		p.refused("writing "+path, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	p.refused("IP_TRANSPARENT", unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1))
	p.refused("SO_MARK", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1))
}

// borrow tries to have the relay's sockets, or another's network.
func (p *probe) borrow() {
	var sockets []string
	entries, _ := os.ReadDir("/proc/1/fd")
	for _, e := range entries {
		sockets = append(sockets, e.Name())
	}
	p.none("descriptors of the first process", sockets)
	for _, name := range []string{"/proc/1/ns/net", "/proc/1/ns/user"} {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, 0)
			_ = unix.Close(fd)
		}
		p.refused("entering "+name, err)
	}
	p.refused("a network of its own", attempt(call(unix.SYS_UNSHARE, unix.CLONE_NEWNET)).err())
}
