// Package lab gives a test a small internet of its own: network and mount namespaces in which the test runs once more, an
// address that is reached over a loopback, and servers on it: DNS (what /etc/resolv.conf names), HTTP, TLS, and one that
// says something first and then echoes, and one that only takes.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Address is where the servers are. EchoPort says something first and then echoes, SinkPort takes everything in silence.
const (
	Address  = "203.0.113.10"
	EchoPort = 2222
	SinkPort = 2223
)

const insideVar = "TOOLHOST_TEST_LAB"

// Lab is the servers.
type Lab struct {
	// CA is the file with the certificate of all names below .test.
	CA string

	mu      sync.Mutex
	queries map[string]int
	names   map[string][]netip.Addr
	moves   map[string][]netip.Addr // each query takes the next
	sunk    int64
	sites   map[string]http.Handler
}

// Run runs the test in namespaces of its own, as root; what it prints is the
// outer test's. nil is for the outer one, which is to return.
func Run(t *testing.T) *Lab {
	t.Helper()
	if os.Getenv(insideVar) == t.Name() {
		return inside(t)
	}
	if os.Getenv("TOOLHOST_TEST_STAGE") == "" { // what is measured there is measured alone
		t.Parallel()
	}
	if os.Geteuid() != 0 {
		t.Skip("namespaces with a network of their own take root here: run the tests as root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), insideVar+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s", said)
	return nil
}

func inside(t *testing.T) *Lab {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l := &Lab{CA: filepath.Join(dir, "ca.pem"), queries: map[string]int{}, names: map[string][]netip.Addr{}, moves: map[string][]netip.Addr{}, sites: map[string]http.Handler{}}
	conf := filepath.Join(dir, "resolv.conf")
	for _, err := range []error{
		os.WriteFile(conf, []byte("nameserver "+Address+"\n"), 0o644),
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(conf, "/etc/resolv.conf", "", unix.MS_BIND, ""),
		addAddress("lo:1", Address),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l.serve(t)
	return l
}

// addAddress brings lo up with one more address, below a label of its own.
func addAddress(label, addr string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP)
	alias, err := unix.NewIfreq(label)
	if err != nil {
		return err
	}
	v4 := netip.MustParseAddr(addr).As4()
	return errors.Join(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up), alias.SetInet4Addr(v4[:]), unix.IoctlIfreq(fd, unix.SIOCSIFADDR, alias))
}

// addAddress6 gives lo, which is up, an IPv6 address, too (struct in6_ifreq).
func addAddress6(addr netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	request := struct {
		addr   [16]byte
		prefix uint32
		index  int32
	}{addr.As16(), 128, int32(lo.Index)}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&request))); errno != 0 && errno != unix.EEXIST {
		return errno
	}
	return nil
}

// Set gives a name addresses; without any it does not exist. Names below .test
// have the servers' otherwise.
func (l *Lab) Set(name string, addrs ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[name] = parse(addrs)
}

// Move gives a name another address at each query, and then the last.
func (l *Lab) Move(name string, addrs ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves[name] = parse(addrs)
}

func parse(addrs []string) []netip.Addr {
	list := []netip.Addr{}
	for _, a := range addrs {
		list = append(list, netip.MustParseAddr(a))
	}
	return list
}

// Queries counts those for a name, or those for any where it is empty.
func (l *Lab) Queries(name string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name != "" {
		return l.queries[name]
	}
	for _, count := range l.queries {
		n += count
	}
	return n
}

// Sunk is how many bytes have come to connections at SinkPort that have ended.
func (l *Lab) Sunk() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sunk
}

func (l *Lab) serve(t *testing.T) {
	packets, err := net.ListenPacket("udp", Address+":53")
	if err != nil {
		t.Fatal(err)
	}
	config, err := l.certify()
	if err != nil {
		t.Fatal(err)
	}
	var listeners []net.Listener
	for _, port := range []int{80, 443, EchoPort, SinkPort} {
		listener, err := net.Listen("tcp", net.JoinHostPort(Address, strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, listener)
	}
	web := &http.Server{Handler: http.HandlerFunc(l.handle)}
	var serving sync.WaitGroup
	serving.Go(func() { l.dns(packets) })
	serving.Go(func() { _ = web.Serve(listeners[0]) })
	secure := &http.Server{Handler: web.Handler, TLSConfig: config}
	serving.Go(func() { _ = secure.ServeTLS(listeners[1], "", "") }) // HTTP/2, too
	serving.Go(func() { Each(listeners[2], l.echo) })
	serving.Go(func() { Each(listeners[3], l.sink) })
	t.Cleanup(func() {
		_ = packets.Close()
		_, _ = listeners[2].Close(), listeners[3].Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for _, s := range []*http.Server{web, secure} {
			if s.Shutdown(ctx) != nil {
				_ = s.Close()
			}
		}
		serving.Wait()
	})
}

// Site has requests for a host answered by h.
func (l *Lab) Site(host string, h http.Handler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sites[host] = h
}

// SiteOf is what answers requests for a host; nil is for the lab itself.
func (l *Lab) SiteOf(host string) http.Handler {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sites[host]
}

// Listen serves HTTP at one more address and port, too, as all hosts have it.
func (l *Lab) Listen(t *testing.T, at netip.AddrPort) {
	switch {
	case at.Addr().IsLoopback():
	case at.Addr().Is6():
		if err := addAddress6(at.Addr()); err != nil {
			t.Fatal(err)
		}
	default:
		if err := addAddress("lo:"+strconv.Itoa(int(at.Addr().As4()[3])), at.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	var listener net.Listener
	wait.Until(t, at.String()+" can be listened at", func() (ready bool) { // the kernel brings addresses of IPv6 up by and by
		var err error
		listener, err = net.Listen("tcp", at.String())
		return err == nil
	})
	web := &http.Server{Handler: http.HandlerFunc(l.handle)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(listener) })
	t.Cleanup(func() {
		_ = web.Close()
		serving.Wait()
	})
}

func (l *Lab) handle(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	if site := l.SiteOf(host); site != nil {
		site.ServeHTTP(w, r)
		return
	}
	n, _ := io.Copy(io.Discard, r.Body)
	if size, err := strconv.Atoi(r.URL.Query().Get("bytes")); err == nil {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		for chunk := make([]byte, 64<<10); size > 0; size -= len(chunk) {
			if _, err := w.Write(chunk[:min(size, len(chunk))]); err != nil {
				return
			}
		}
		return
	}
	fmt.Fprintf(w, "%s %s %s, %d bytes, at %s", r.Method, r.Host, r.URL, n, r.Context().Value(http.LocalAddrContextKey))
}

// Each serves all connections of a listener until that is closed, and waits for them.
func Each(listener net.Listener, serve func(net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer conn.Close()
			serve(conn)
		})
	}
}

func (l *Lab) echo(conn net.Conn) {
	if _, err := io.WriteString(conn, "ready\n"); err == nil {
		_, _ = io.Copy(conn, conn)
	}
}

func (l *Lab) sink(conn net.Conn) {
	n, _ := io.Copy(io.Discard, conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sunk += n
}

func (l *Lab) dns(conn net.PacketConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		addrs := l.lookUp(strings.TrimSuffix(strings.ToLower(q.Name.String()), "."), q.Type)
		r := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		if addrs == nil {
			r.RCode = dnsmessage.RCodeNameError
		}
		for _, a := range addrs {
			head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
			switch {
			case a.Is4() && q.Type == dnsmessage.TypeA:
				r.Answers = append(r.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
			case a.Is6() && q.Type == dnsmessage.TypeAAAA:
				r.Answers = append(r.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
		if raw, err := r.Pack(); err == nil {
			_, _ = conn.WriteTo(raw, from)
		}
	}
}

func (l *Lab) lookUp(name string, kind dnsmessage.Type) []netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries[name]++
	if list := l.moves[name]; len(list) > 0 {
		if kind == dnsmessage.TypeA && len(list) > 1 {
			l.moves[name] = list[1:]
		}
		return list[:1]
	}
	if list, known := l.names[name]; known {
		if len(list) == 0 {
			return nil
		}
		return list
	}
	if strings.HasSuffix(name, ".test") {
		return []netip.Addr{netip.MustParseAddr(Address)}
	}
	return nil
}
