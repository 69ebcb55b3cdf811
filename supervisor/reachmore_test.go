package supervisor_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

func pour(to, bytes string) (string, error) {
	left, err := strconv.ParseInt(bytes, 10, 64)
	if err != nil {
		return "", err
	}
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	for chunk := make([]byte, 256<<10); left > 0; {
		n, err := conn.Write(chunk[:min(left, int64(len(chunk)))])
		if err != nil {
			return "", err
		}
		left -= int64(n)
	}
	return "poured", nil
}

// idle are connections that nothing is to close.
var idle []net.Conn

// hold says when all connections have been greeted.
func hold(to, number string) (string, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return "", err
	}
	for range n {
		conn, err := net.Dial("tcp", to)
		if err != nil {
			return "", err
		}
		idle = append(idle, conn)
		if _, err := io.ReadFull(conn, make([]byte, len("ready\n"))); err != nil {
			return "", err
		}
	}
	return "holds", nil
}

// tryHeld says whether all of these answer.
func tryHeld(text string) (string, error) {
	for _, conn := range idle {
		if _, err := io.WriteString(conn, text); err != nil {
			return "", err
		}
		if _, err := io.ReadFull(conn, make([]byte, len(text))); err != nil {
			return "", err
		}
	}
	return "all answer", nil
}

func storm(to, number string) (string, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return "", err
	}
	var left, greeted atomic.Int64
	left.Store(n)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				conn, err := net.Dial("tcp", to)
				if err != nil {
					continue
				}
				if _, err := conn.Read(make([]byte, 1)); err == nil {
					greeted.Add(1)
				}
				_ = conn.Close()
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("greeted %d", greeted.Load()), nil
}

// reroute tries what would change the network: rtnetlink(7), and netdevice(7).
func reroute() (string, error) {
	var done []string
	put := func(kind uint16, body []byte) {
		if err := routeRequest(kind, body); err == nil {
			done = append(done, fmt.Sprint("netlink ", kind))
		}
	}
	route := []byte{syscall.AF_INET, 0, 0, 0, syscall.RT_TABLE_MAIN, syscall.RTPROT_BOOT, syscall.RT_SCOPE_LINK, syscall.RTN_UNICAST, 0, 0, 0, 0, 8, 0, syscall.RTA_OIF, 0, 1, 0, 0, 0}
	address := []byte{syscall.AF_INET, 32, 0, 0, 1, 0, 0, 0, 8, 0, syscall.IFA_LOCAL, 0, 203, 0, 113, 10}
	link := make([]byte, 16)
	link[4] = 1
	put(syscall.RTM_NEWROUTE, route)
	put(syscall.RTM_NEWADDR, address)
	put(syscall.RTM_DELLINK, link)
	put(syscall.RTM_NEWLINK, append(bytes.Clone(link[:8]), 0, 0, 0, 0, 1, 0, 0, 0)) // down
	if fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP); err == nil {
		_ = syscall.Close(fd)
		done = append(done, "a raw socket")
	}
	if len(done) > 0 {
		return "changed: " + strings.Join(done, ", "), nil
	}
	return "", fmt.Errorf("nothing can be changed")
}

// routeRequest is nil only where the kernel has said that it was done.
func routeRequest(kind uint16, body []byte) error {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	const create = 0x400 // NLM_F_CREATE
	raw := binary.LittleEndian.AppendUint32(nil, uint32(syscall.NLMSG_HDRLEN+len(body)))
	raw = binary.LittleEndian.AppendUint16(raw, kind)
	raw = binary.LittleEndian.AppendUint16(raw, syscall.NLM_F_REQUEST|syscall.NLM_F_ACK|create)
	raw = append(append(raw, make([]byte, 8)...), body...)
	if err := syscall.Sendto(fd, raw, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if code := int32(binary.LittleEndian.Uint32(answer[syscall.NLMSG_HDRLEN:n])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}
