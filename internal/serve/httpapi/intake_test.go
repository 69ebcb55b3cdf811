package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/budget/memory"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// Twelve bodies of 8 MiB of small elements took gigabytes.
func TestManyValuesAreRefusedBeforeTheyAreDecoded(t *testing.T) {
	stage.Whole(t)
	w := newWorld(t, nil)
	w.begin(api.TurnSpec{TurnID: "t"})
	for name, body := range map[string]string{
		"arguments": `{"calls":[{"id":"a","tool":"echo","arguments":{"x":[0` + strings.Repeat(",0", 4_000_000) + `]}}]}`,
		"calls":     `{"calls":[{}` + strings.Repeat(",{}", 2_700_000) + `]}`,
		"members":   `{"calls":[]` + many(500_000) + `}`,
	} {
		before := allocated()
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				status, answer := w.send("POST", "/api/turns/t/calls", body)
				if status != http.StatusRequestEntityTooLarge && status != http.StatusServiceUnavailable {
					t.Errorf("%s: %d %s", name, status, answer)
				}
			})
		}
		all.Wait()
		if took := allocated() - before; took > 12*64<<20 { // both ends of it, and what grows
			t.Errorf("%s: %d MiB were allocated for 96 MiB of bodies", name, took>>20)
		}
	}
	if used := w.server.intake.bodies.Used(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}

func many(members int) string {
	var b strings.Builder
	for i := range members {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	return b.String()
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A client that sends all of its body before it reads gets its answer, too.
func TestARefusedClientMaySendOn(t *testing.T) { // which has a few seconds for it: not beside others
	w := newWorld(t, func(c *Config) { c.MaxBodyBytes = 1 << 16 })
	for path, want := range map[string]int{"/api/turns": http.StatusRequestEntityTooLarge, "/nowhere": http.StatusNotFound} {
		conn, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(hangLimit))
		const size = 4 << 20 // more than a socket holds
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			path, size, strings.Repeat("x", size)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
}

// Large bodies of one client come one after the other, and all are answered.
func TestLargeBodiesTakeTurns(t *testing.T) {
	stage.Whole(t)
	t.Parallel()
	w := newWorld(t, nil)
	body := `{"turnId":"` + strings.Repeat("x", 4<<20) + `"}`
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				status, answer := w.send("POST", "/api/turns", body)
				switch status {
				case http.StatusBadRequest:
					return
				case http.StatusServiceUnavailable: // on a busy machine
				default:
					t.Errorf("%d %.300s", status, answer)
					return
				}
			}
		})
	}
	all.Wait()
	wait.Until(t, "all memory to be given back", func() bool { return w.server.intake.bodies.Used() == 0 })
}

// Who promises much and sends little holds up nobody.
func TestSlowBodiesLoseTheirShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Stall = time.Minute }) // the first sends nothing while the others come
	w.server.intake.bodies = memory.New(8<<20, 100*time.Millisecond)
	var slow []net.Conn
	for range 8 {
		conn, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /api/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 8000000\r\n\r\n{\"turnId\":\"%s", strings.Repeat("x", 120<<10))
		slow = append(slow, conn)
		wait.Until(t, "the first to have memory", func() bool { return w.server.intake.bodies.Used() > 0 })
	}
	body := `{"turnId":"` + strings.Repeat("y", 400<<10) + `"}`
	if status, answer := w.send("POST", "/api/turns", body); status != http.StatusBadRequest && status != http.StatusServiceUnavailable {
		t.Errorf("%d %.300s", status, answer)
	}
	// They are told so, as soon as somebody waits for what they have: the first one, or
	// another where that was not read from in time.
	told := make(chan *http.Response, len(slow))
	for _, conn := range slow {
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		go func() {
			if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				told <- response
			}
		}()
	}
	var response *http.Response
	select {
	case response = <-told:
	case <-time.After(time.Minute):
		t.Fatal("nobody is told anything")
	}
	var answer bytes.Buffer
	_, _ = answer.ReadFrom(response.Body)
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", response.StatusCode, answer.String())
	}
}

// While large bodies are decoded, others wait and small requests don't.
func TestLargeBodiesLeaveRoomForSmallRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	taken := w.server.intake.turns
	for range cap(taken) {
		taken <- struct{}{}
	}
	large := make(chan int, 1)
	go func() {
		status, _ := w.send("POST", "/api/turns", `{"turnId":"`+strings.Repeat("x", freeBodyBytes)+`"}`)
		large <- status
	}()
	if status, answer := w.send("POST", "/api/turns", `{"turnId":"small"}`); status != http.StatusCreated {
		t.Errorf("a small one beside it: %d %s", status, answer)
	}
	select {
	case status := <-large:
		t.Errorf("a large one was answered %d before it was its turn", status)
	default:
	}
	for range cap(taken) {
		<-taken
	}
	if status := <-large; status != http.StatusBadRequest {
		t.Errorf("then it was answered %d", status)
	}
	wait.Until(t, "its turn to be over", func() bool { return len(taken) == 0 })
}

// A body that no handler decodes keeps its turn for no longer than it is looked at,
// however long the request goes on.
func TestAStreamKeepsNoTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if status, answer := w.send("POST", "/api/turns", `{"turnId":"watched"}`); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	for range cap(w.server.intake.turns) {
		r, err := http.NewRequestWithContext(w.ctx(), "GET", "http://localhost/api/turns/watched/events", strings.NewReader("{}"+strings.Repeat(" ", freeBodyBytes)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := w.unix.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("it was answered %d", response.StatusCode)
		}
	}
	if n := len(w.server.intake.turns); n != 0 {
		t.Errorf("%d turns are taken by streams", n)
	}
}

// What a call has for arguments counts until it has been answered, not until its body was
// decoded.
func TestArgumentsCountWhileTheirCallWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begin(api.TurnSpec{})
	call := callOf("held", "work", fakeArgs{Hold: true})
	call.Meta = json.RawMessage(`{"x":"` + strings.Repeat("y", 1<<20) + `"}`)
	done := w.runLater(w.ctx(), id, call)
	running := w.fakes.await(t, "held", true)
	wait.Until(t, "its body is decoded, and its arguments count", func() bool {
		used := w.server.intake.bodies.Used()
		return used > 1<<20-freeBodyBytes && used < 3<<19
	})
	close(running.letGo)
	if got := w.wait(done); got.err != nil || !got.results[0].OK() {
		t.Fatalf("%+v", got)
	}
	wait.Until(t, "nothing counts any more", func() bool { return w.server.intake.bodies.Used() == 0 })
}
