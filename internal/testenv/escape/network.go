package escape

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// network says that there is nothing to talk to but the tool's own loopback, and no way to change that.
func network(p *probe) {
	p.families()
	p.protocols()
	p.socketOptions()
	p.listeners()
	if p.env.HostNetwork {
		p.info("outside", "the host's network was given")
		return
	}
	p.interfaces()
	p.outside()
	p.configure()
}

// families tries every address family but those that reach no further than the sandbox. The kernel looks at the low 32
// bits of a family only. To ask for a family may load a module: outside a sandbox only common ones are asked for.
func (p *probe) families() {
	allowed := []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	common := []int{unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG}
	for family := unix.AF_UNIX; family < unix.AF_MAX+4; family++ {
		if slices.Contains(allowed, family) || !p.boxed && !slices.Contains(common, family) {
			continue
		}
		var made []string
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			if o := attempt(call(unix.SYS_SOCKET, uintptr(family), uintptr(kind), 0)); o.err() == nil {
				made = append(made, strconv.Itoa(kind))
			}
		}
		p.none(fmt.Sprintf("socket family %d", family), made)
	}
	for name, family := range map[string]uintptr{"packet": unix.AF_PACKET, "alg": unix.AF_ALG, "vsock": unix.AF_VSOCK, "key": unix.AF_KEY, "xdp": unix.AF_XDP} {
		for _, kind := range []uintptr{unix.SOCK_RAW, unix.SOCK_SEQPACKET, unix.SOCK_STREAM} {
			if !p.boxed && !slices.Contains(common, int(family)) {
				continue
			}
			o := attempt(call(unix.SYS_SOCKET, family|1<<32, kind, 0))
			p.refused(fmt.Sprintf("socket %s %d with a high bit", name, kind), o.err())
		}
	}
	a := newArena()
	defer a.free()
	for _, family := range []uintptr{unix.AF_VSOCK, unix.AF_NETLINK, unix.AF_TIPC, unix.AF_TIPC | 1<<32} {
		if !p.boxed && family&unix.AF_TIPC == unix.AF_TIPC {
			continue
		}
		o := attempt(call(unix.SYS_SOCKETPAIR, family, unix.SOCK_STREAM, 0, a.words(0)))
		p.refused(fmt.Sprintf("socketpair %#x", family), o.err())
	}
	for protocol := range 23 {
		if protocol == unix.NETLINK_ROUTE || !p.boxed && protocol != unix.NETLINK_KOBJECT_UEVENT && protocol != unix.NETLINK_GENERIC {
			continue
		}
		o := attempt(call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, uintptr(protocol)))
		p.refused(fmt.Sprintf("netlink protocol %d", protocol), o.err())
	}
	p.info("netlink route", "%s", attempt(call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 0)).name())
}

// protocols tries what the internet families have beside TCP and UDP.
func (p *probe) protocols() {
	for _, family := range []uintptr{unix.AF_INET, unix.AF_INET6} {
		for _, t := range []struct {
			name           string
			kind, protocol uintptr
		}{
			{"raw icmp", unix.SOCK_RAW, unix.IPPROTO_ICMP},
			{"raw", unix.SOCK_RAW, unix.IPPROTO_RAW},
			{"raw tcp", unix.SOCK_RAW, unix.IPPROTO_TCP},
			{"raw with a high bit", unix.SOCK_RAW | 1<<32, unix.IPPROTO_RAW},
			{"sctp", unix.SOCK_STREAM, unix.IPPROTO_SCTP},
			{"sctp packets", unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP},
			{"udplite", unix.SOCK_DGRAM, 136},
			{"dccp", unix.SOCK_DCCP, unix.IPPROTO_DCCP},
			{"smc", unix.SOCK_STREAM, 256},
			{"l2tp", unix.SOCK_DGRAM, unix.IPPROTO_L2TP},
			{"packet", unix.SOCK_PACKET, 0x300},
			{"rdm", unix.SOCK_RDM, 0},
		} {
			if !p.boxed && !strings.HasPrefix(t.name, "raw") {
				continue
			}
			o := attempt(call(unix.SYS_SOCKET, family, t.kind, t.protocol))
			p.refused(fmt.Sprintf("family %d %s", family, t.name), o.err())
		}
		p.info(fmt.Sprintf("family %d mptcp", family), "%s", attempt(call(unix.SYS_SOCKET, family, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)).name())
		p.info(fmt.Sprintf("family %d ping", family), "%s", attempt(call(unix.SYS_SOCKET, family, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)).name())
	}
}

// socketOptions tries options that need rights over the network, on a socket of its own.
func (p *probe) socketOptions() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		p.refused("socket", err)
		return
	}
	defer unix.Close(fd)
	p.refused("bind to eth0", unix.BindToDevice(fd, "eth0"))
	for _, t := range []struct {
		name                 string
		level, option, value int
	}{
		{"SO_MARK", unix.SOL_SOCKET, unix.SO_MARK, 1},
		{"SO_PRIORITY 7", unix.SOL_SOCKET, unix.SO_PRIORITY, 7},
		{"SO_RCVBUFFORCE", unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4096},
		{"SO_SNDBUFFORCE", unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4096},
		{"IP_TRANSPARENT", unix.SOL_IP, unix.IP_TRANSPARENT, 1},
		{"SO_DEBUG", unix.SOL_SOCKET, unix.SO_DEBUG, 1},
	} {
		p.refused(t.name, unix.SetsockoptInt(fd, t.level, t.option, t.value))
	}
	// SIOCSIFFLAGS with the flags that lo has.
	request, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request)
	}
	p.info("flags of lo", "%s", errnoName(err))
	if err == nil {
		p.refused("set the flags of lo", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
	}
}

// listeners says that what listens on the host is not in reach.
func (p *probe) listeners() {
	if name := p.env.Abstract; name != "" {
		p.refused("abstract socket", connect(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: "@" + name}))
		b, err := os.ReadFile("/proc/net/unix")
		p.holds("abstract socket in /proc/net/unix", !strings.Contains(string(b), name), "%s", errnoName(err))
	}
	if path := p.env.PathSocket; path != "" {
		p.refused("path socket", connect(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: path}))
		_, err := os.Lstat(path)
		p.refused("path socket is visible", err)
		b, err := os.ReadFile("/proc/net/unix")
		p.holds("path socket in /proc/net/unix", !strings.Contains(string(b), path), "%s", errnoName(err))
	}
	for _, path := range strings.Fields("/run/docker.sock /run/containerd/containerd.sock /run/dbus/system_bus_socket /run/systemd/notify /run/systemd/private /run/podman/podman.sock /dev/log /run/user/0/bus /tmp/.X11-unix/X0") {
		p.refused("socket "+path, connect(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: path}))
	}
	if port := p.env.TCPPort; port != 0 && !p.env.HostNetwork {
		p.loopback(port)
	}
}

// loopback tries the host's loopback listener, by every address that means the loopback.
func (p *probe) loopback(port int) {
	for _, ip := range []string{"127.0.0.1", "127.1.2.3", "0.0.0.0"} {
		c, err := net.DialTimeout("tcp4", net.JoinHostPort(ip, strconv.Itoa(port)), childExpiry)
		if err == nil {
			c.Close()
		}
		p.refused("host's port at "+ip, err)
	}
	files, _ := filepath.Glob("/proc/net/tcp*")
	hex := fmt.Sprintf(":%04X ", port)
	for _, file := range files {
		b, _ := os.ReadFile(file)
		p.holds("host's port in "+file, !strings.Contains(string(b), hex), "")
	}
}

// connect makes a socket and connects it without waiting. EINPROGRESS is not an error: the kernel has found a way.
func connect(family, kind, protocol int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, to)
	if err == unix.EINPROGRESS || err == unix.EAGAIN {
		return nil
	}
	return err
}

// interfaces checks that the only interfaces are the loopback, and tunnels that the kernel makes by itself and that are down.
func (p *probe) interfaces() {
	b, err := os.ReadFile("/proc/net/dev")
	var found []string
	for line := range strings.Lines(string(b)) {
		name, _, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if ok && name != "lo" && !fallbackTunnel(name) {
			found = append(found, name)
		}
	}
	p.none("interfaces in /proc/net/dev", found)
	p.info("/proc/net/dev", "%d bytes %s", len(b), errnoName(err))
	found = nil
	list, err := net.Interfaces()
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 && (!fallbackTunnel(i.Name) || i.Flags&net.FlagUp != 0) {
			found = append(found, i.Name)
		}
	}
	p.none("interfaces by netlink", found)
	p.info("netlink", "%s", errnoName(err))
	routes, _ := os.ReadFile("/proc/net/route")
	p.holds("no route", strings.Count(string(routes), "\n") <= 1, "%d lines", strings.Count(string(routes), "\n"))
	neighbours, _ := os.ReadFile("/proc/net/arp")
	p.holds("no neighbour", strings.Count(string(neighbours), "\n") <= 1, "%d lines", strings.Count(string(neighbours), "\n"))
}

// fallbackTunnel says whether the kernel makes an interface of this name in each new network namespace.
func fallbackTunnel(name string) bool {
	return slices.Contains(strings.Fields("sit0 tunl0 gre0 gretap0 erspan0 ip_vti0 ip6_vti0 ip6tnl0 ip6gre0"), name)
}

// outside says that no address but the loopback's has a way to it. Nothing is sent by UDP; TCP sends one SYN where it can.
func (p *probe) outside() {
	for _, t := range []struct {
		ip   string
		port int
	}{
		{"169.254.169.254", 80},
		{"10.0.0.1", 80},
		{"172.17.0.1", 2375},
		{"192.168.0.1", 80},
		{"8.8.8.8", 53},
		{"1.1.1.1", 443},
		{"100.100.100.200", 80},
		{"255.255.255.255", 9},
		{"224.0.0.1", 9},
		{"2001:4860:4860::8888", 53},
		{"fd00:ec2::254", 80},
		{"ff02::1", 9},
	} {
		family, address := socketAddress(t.ip, t.port)
		p.unreachable("udp to "+t.ip, connect(family, unix.SOCK_DGRAM, 0, address))
		p.unreachable("tcp to "+t.ip, connect(family, unix.SOCK_STREAM, 0, address))
		if t.ip == "8.8.8.8" {
			p.unreachable("mptcp to "+t.ip, connect(family, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, address))
		}
	}
	const vmaddrHost = 2
	if err := attempt(call(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0)).err(); err != nil {
		p.refused("vsock", err)
		return
	}
	p.refused("vsock to the host", connect(unix.AF_VSOCK, unix.SOCK_STREAM, 0, &unix.SockaddrVM{CID: vmaddrHost, Port: 1}))
	p.refused("vsock to itself", connect(unix.AF_VSOCK, unix.SOCK_DGRAM, 0, &unix.SockaddrVM{CID: 1, Port: 1}))
}

// unreachable is contained if the kernel answered at once, and not with the answer of a host.
func (p *probe) unreachable(name string, err error) {
	p.add(Fact{Case: name, Errno: errnoName(err), Escaped: err == nil || err == unix.ECONNREFUSED || err == unix.ETIMEDOUT})
}

func socketAddress(ip string, port int) (int, unix.Sockaddr) {
	parsed := net.ParseIP(ip)
	if v4 := parsed.To4(); v4 != nil {
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte(v4)}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte(parsed.To16())}
}
