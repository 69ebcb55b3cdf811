package fleet_test

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// wire is the network between a party and the engine's servers: it can hold up one
// direction or both, so that what was sent comes late and in one burst, repeat messages
// and have them overtake each other, and cut what is connected.
type wire struct {
	listeners []net.Listener
	rough     atomic.Bool // messages are repeated and late
	mu        sync.Mutex
	free      [2]sync.RWMutex // up, down; locked while that direction is held up
	conns     map[net.Conn]bool
}

// newWire is one to these addresses.
func newWire(t testing.TB, to ...string) *wire {
	t.Helper()
	w := &wire{conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		for _, ln := range w.listeners {
			_ = ln.Close()
		}
		w.cut()
	})
	for _, address := range to {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		w.listeners = append(w.listeners, ln)
		go w.serve(ln, address)
	}
	return w
}

// url is what a party connects to.
func (w *wire) url() string {
	var urls []string
	for _, ln := range w.listeners {
		urls = append(urls, "nats://"+ln.Addr().String())
	}
	return strings.Join(urls, ",")
}

func (w *wire) serve(ln net.Listener, to string) {
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", to)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.conns[near], w.conns[far] = true, true
		w.mu.Unlock()
		go w.copy(far, near, &w.free[0])
		go w.copy(near, far, &w.free[1])
	}
}

func (w *wire) copy(to, from net.Conn, free *sync.RWMutex) {
	defer func() {
		_, _ = from.Close(), to.Close()
		w.mu.Lock()
		delete(w.conns, from)
		delete(w.conns, to)
		w.mu.Unlock()
	}()
	out := &whole{to: to}
	for in := bufio.NewReaderSize(from, 64<<10); ; {
		m, isMessage, err := readProtocol(in)
		if err != nil {
			return
		}
		free.RLock()
		if isMessage && w.rough.Load() {
			out.roughly(m)
		} else {
			out.write(m)
		}
		free.RUnlock()
	}
}

// whole writes one piece of the protocol after another.
type whole struct {
	mu sync.Mutex
	to net.Conn
}

func (o *whole) write(m []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.to.Write(m)
}

// roughly has a message come once, or again up to a second later, or late.
func (o *whole) roughly(m []byte) {
	n := rand.IntN(10)
	if n > 0 {
		o.write(m)
	}
	if n < 4 {
		time.AfterFunc(upTo(time.Second), func() { o.write(m) })
	}
}

// readProtocol reads one line of NATS' client protocol, with its payload if it is a message.
func readProtocol(in *bufio.Reader) (m []byte, isMessage bool, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, false, err
	}
	words := bytes.Fields(line)
	if len(words) < 3 || !bytes.Contains([]byte("PUB HPUB MSG HMSG"), bytes.ToUpper(words[0])) {
		return line, false, nil
	}
	size, err := strconv.Atoi(string(words[len(words)-1]))
	if err != nil {
		return nil, false, err
	}
	m = append(line, make([]byte, size+2)...)
	_, err = io.ReadFull(in, m[len(line):])
	return m, true, err
}

// roughen repeats messages and delays them for a while.
func (w *wire) roughen(d time.Duration) {
	w.rough.Store(true)
	time.Sleep(d)
	w.rough.Store(false)
}

// hold stops directions for a while.
func (w *wire) hold(up, down bool, d time.Duration) {
	for i, held := range []bool{up, down} {
		if held {
			w.free[i].Lock()
			defer w.free[i].Unlock()
		}
	}
	time.Sleep(d)
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close()
	}
}
