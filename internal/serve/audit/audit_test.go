package audit

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/leodido/go-syslog/v4/rfc5424"

	"github.com/toolhost/toolhost/internal/journal"
)

func record(i int) journal.Audit {
	return journal.Audit{Seq: int64(i), Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Who: "token ci", Action: "token.create", What: fmt.Sprint("é\n😀 ", i), Hash: strings.Repeat("a", 64)}
}

// played is a receiver that takes what it is let.
type played struct {
	mu    sync.Mutex
	taken []journal.Audit
	err   error
	stuck chan struct{} // not nil: nothing is taken before it is closed
	began atomic.Int32
	most  int // not 0: more at once are refused
}

func (p *played) Send(ctx context.Context, list []journal.Audit) (int, error) {
	p.began.Add(1)
	if p.stuck != nil {
		select {
		case <-p.stuck:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	if p.most > 0 && len(list) > p.most {
		return 0, errors.New("413 Request Entity Too Large")
	}
	p.taken = append(p.taken, list...)
	return len(list), nil
}

func (p *played) Close() {}

func (p *played) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// A receiver that does not answer holds up nobody. What is too much is lost, counted,
// and told it once it answers; the rest comes in order.
func TestASlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{stuck: make(chan struct{})}
		var lost atomic.Int64
		o := NewOutbox("test", p, hclog.NewNullLogger(), func(n int) { lost.Add(int64(n)) })
		began := time.Now()
		o.Put(record(0))
		synctest.Wait() // it is being sent
		for i := range maxQueued + 10 {
			o.Put(record(1 + i))
		}
		if took := time.Since(began); took != 0 || lost.Load() != 10 {
			t.Errorf("took %s, lost %d", took, lost.Load())
		}
		close(p.stuck)
		synctest.Wait()
		o.Close()
		var told, seqs []int64
		for _, a := range p.taken {
			if a.Action == "audit.lost" {
				told = append(told, a.Seq)
				if a.What != "10 records" {
					t.Errorf("told of %s", a.What)
				}
				continue
			}
			seqs = append(seqs, a.Seq)
		}
		if len(told) != 1 || len(seqs) != maxQueued+1 {
			t.Fatalf("told of a loss %d times, got %d records", len(told), len(seqs))
		}
		for i, seq := range seqs {
			if seq != int64(i) {
				t.Fatalf("record %d has the number %d", i, seq)
			}
		}
	})
}

// What fails is tried again, in order and once; the end of the daemon waits for a dead
// receiver no longer than closeLimit.
func TestADeadReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{err: errors.New("connection refused")}
		var lost atomic.Int64
		o := NewOutbox("test", p, hclog.NewNullLogger(), func(n int) { lost.Add(int64(n)) })
		o.Put(record(1))
		time.Sleep(10 * time.Second)
		o.Put(record(2))
		p.fail(nil)
		time.Sleep(lastPause)
		synctest.Wait()
		if len(p.taken) != 2 || p.taken[0].Seq != 1 || p.taken[1].Seq != 2 || p.began.Load() > 10 {
			t.Errorf("%d attempts gave %+v", p.began.Load(), p.taken)
		}
		p.fail(errors.New("connection refused"))
		o.Put(record(3))
		synctest.Wait()
		o.Put(record(4))
		began := time.Now()
		o.Close()
		if took := time.Since(began); took > closeLimit || lost.Load() != 2 {
			t.Errorf("the end took %s, lost %d", took, lost.Load())
		}
	})
}

// A receiver that takes only few records at once gets all, in order and once, and seldom more
// than it takes.
func TestAReceiverOfSmallRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{most: 3, stuck: make(chan struct{})}
		o := NewOutbox("test", p, hclog.NewNullLogger(), func(n int) { t.Errorf("%d are lost", n) })
		const n = 2 * maxBatch
		for i := range n {
			o.Put(record(i))
		}
		close(p.stuck)
		time.Sleep(n * lastPause)
		o.Close()
		if len(p.taken) != n {
			t.Fatalf("%d have come", len(p.taken))
		}
		if attempts := p.began.Load(); attempts > n/2+n/8 { // two at once, and one more in eight
			t.Errorf("%d attempts", attempts)
		}
		for i, a := range p.taken {
			if a.Seq != int64(i) {
				t.Fatalf("record %d has the number %d", i, a.Seq)
			}
		}
	})
}

// parse holds a message to RFC 5424, and gives the record in it.
func parse(t *testing.T, raw []byte) journal.Audit {
	t.Helper()
	m, err := rfc5424.NewParser().Parse(raw)
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	one := m.(*rfc5424.SyslogMessage)
	if *one.Facility != authpriv || *one.Severity != notice || *one.Appname != "toolhost" || *one.MsgID != "token.create" || one.Timestamp.UnixMicro() != record(0).Time.UnixMicro() || one.ProcID == nil || one.Hostname == nil {
		t.Errorf("%q is %+v", raw, one)
	}
	var a struct {
		journal.Audit
		Hash string `json:"hash"`
	}
	if err := json.Unmarshal([]byte(*one.Message), &a); err != nil {
		t.Fatalf("%q: %v", *one.Message, err)
	}
	a.Audit.Hash = a.Hash
	return a.Audit
}

// receiver takes messages as RFC 6587 frames them, and can hang up.
func receiver(t *testing.T, l net.Listener) (got chan []byte, hangUp func()) {
	t.Helper()
	t.Cleanup(func() { _ = l.Close() })
	got = make(chan []byte, 100)
	var mu sync.Mutex
	var conns []net.Conn
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			go func() {
				in := bufio.NewReader(c)
				for {
					var n int
					if _, err := fmt.Fscanf(in, "%d ", &n); err != nil {
						return
					}
					raw := make([]byte, n)
					if _, err := io.ReadFull(in, raw); err != nil {
						return
					}
					got <- raw
				}
			}()
		}
	}()
	return got, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// Each way to a receiver, with a real one: the message is RFC 5424, and over a stream
// a receiver that was started anew gets what comes then.
func TestSyslog(t *testing.T) {
	cert, roots := certificate(t)
	stream := filepath.Join(t.TempDir(), "s")
	for address, open := range map[string]func() (net.Listener, error){
		"tcp://": func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") },
		"tls://": func() (net.Listener, error) {
			return tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
		},
		"unix://" + stream: func() (net.Listener, error) { return net.Listen("unix", stream) },
	} {
		t.Run(address[:4], func(t *testing.T) {
			l, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(address, "unix") {
				address += l.Addr().String()
			}
			got, hangUp := receiver(t, l)
			s, err := NewSyslog(address, &tls.Config{RootCAs: roots})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i := range 3 {
				if n, err := s.Send(t.Context(), []journal.Audit{record(2 * i), record(2*i + 1)}); n != 2 || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
				for k := range 2 {
					if a := parse(t, <-got); a != record(2*i+k) {
						t.Errorf("got %+v", a)
					}
				}
				hangUp()
			}
		})
	}
	t.Run("udp", func(t *testing.T) {
		l, err := net.ListenPacket("udp", "127.0.0.1:0")
		datagrams(t, l, err, "udp://")
	})
	t.Run("unixgram", func(t *testing.T) {
		l, err := net.ListenPacket("unixgram", filepath.Join(t.TempDir(), "log"))
		datagrams(t, l, err, "unix://")
	})
	t.Run("another certificate", func(t *testing.T) {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
		if err != nil {
			t.Fatal(err)
		}
		receiver(t, l)
		_, others := certificate(t)
		s, err := NewSyslog("tls://"+l.Addr().String(), &tls.Config{RootCAs: others})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Send(t.Context(), []journal.Audit{record(1)}); n != 0 || err == nil {
			t.Errorf("sent %d to somebody else, %v", n, err)
		}
	})
}

func datagrams(t *testing.T, l net.PacketConn, err error, scheme string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := NewSyslog(scheme+l.LocalAddr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, err := s.Send(t.Context(), []journal.Audit{record(7)}); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	raw := make([]byte, 64<<10)
	n, _, err := l.ReadFrom(raw)
	if err != nil {
		t.Fatal(err)
	}
	if a := parse(t, raw[:n]); a != record(7) {
		t.Errorf("got %+v", a)
	}
}

// breaking is a connection whose write fails by itself while its time ends.
type breaking struct {
	net.Conn
	end    func()
	cutOff chan struct{}
}

func (b breaking) SetWriteDeadline(time.Time) error { return nil }
func (b breaking) Close() error                     { return nil }
func (b breaking) SetDeadline(time.Time) error      { close(b.cutOff); return nil }
func (b breaking) Write([]byte) (int, error) {
	b.end()
	return 0, errors.New("reset")
}

// What cuts a write off may come when the connection was given up already.
func TestTheEndOfAWriteThatFails(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // Send goes on before what cuts it off
	ctx, cancel := context.WithCancel(t.Context())
	conn := breaking{end: cancel, cutOff: make(chan struct{})}
	s := &Syslog{network: "udp", datagrams: true, conn: conn}
	if sent, err := s.Send(ctx, []journal.Audit{record(1)}); sent != 0 || err == nil {
		t.Errorf("sent %d, %v", sent, err)
	}
	<-conn.cutOff
}

func TestWrongAddresses(t *testing.T) {
	for _, bad := range []string{"", "localhost:514", "http://localhost", "\x00"} {
		if _, err := NewSyslog(bad, nil); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// certificate is one for 127.0.0.1, and what has signed it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(made)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pool
}
