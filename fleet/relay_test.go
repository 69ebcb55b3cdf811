package fleet_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// wire is the network between a worker and the engine: it can hold up one direction or
// both, so that what was sent comes late and in one burst, and cut what is connected.
type wire struct {
	to    string
	ln    net.Listener
	mu    sync.Mutex
	free  [2]sync.RWMutex // up, down; locked while that direction is held up
	conns map[net.Conn]bool
}

func newWire(t testing.TB, to string) *wire {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{to: to, ln: ln, conns: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = ln.Close(); w.cut() })
	go w.serve()
	return w
}

func (w *wire) serve() {
	for {
		near, err := w.ln.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
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
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		free.RLock()
		if n > 0 {
			_, _ = to.Write(buf[:n])
		}
		free.RUnlock()
		if err != nil {
			_, _ = from.Close(), to.Close()
			w.mu.Lock()
			delete(w.conns, from)
			delete(w.conns, to)
			w.mu.Unlock()
			return
		}
	}
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
