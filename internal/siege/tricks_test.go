package siege

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// asChild makes the test binary a tool's child, which waits to be killed.
const asChild = "as-child"

// hang waits for SIGKILL. It sleeps because Go ends a process in which nothing
// can ever happen again.
func hang() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	for {
		time.Sleep(time.Hour)
	}
}

func forever(do func()) error {
	for {
		do()
	}
}

// pour writes until nobody reads.
func pour(to *os.File, piece string) {
	for {
		if _, err := to.WriteString(piece); err != nil {
			hang()
		}
	}
}

// spawn starts a child in a session of its own, which holds all that it is given.
func spawn() {
	cmd := exec.Command(os.Args[0], asChild)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
	_ = cmd.Start() // fails at the limit
}

// says prints a handshake.
func says(line string) func(dir string) {
	return func(dir string) { fmt.Println(strings.ReplaceAll(line, "$DIR", dir)) }
}

// listens takes the host's connection and answers it with something.
func listens(answer string) func(dir string) {
	return func(dir string) {
		listener, err := net.Listen("unix", filepath.Join(dir, "x"))
		if err != nil {
			os.Exit(1)
		}
		fmt.Println("1|1|unix|" + filepath.Join(dir, "x") + "|grpc|")
		if conn, err := listener.Accept(); err == nil {
			fmt.Fprint(conn, answer)
		}
	}
}

// always gives what is cheap to have.
func always[T any](value T) func() T { return func() T { return value } }

// flood sends one event again and again, until the host hangs up.
func flood(build func() *pluginv1.CallEvent) func(*stage) error {
	return func(s *stage) error {
		for e := build(); s.send(e); {
		}
		return nil
	}
}

func structured(build func() string) func(*stage) error {
	return func(s *stage) error {
		json := build()
		s.send(content(&pluginv1.Content{Content: &pluginv1.Content_Text{Text: "kept"}}))
		s.send(result([]byte(json)[:min(len(json), 4<<20-1024)]))
		return nil
	}
}

func emptyContents(s *stage) error {
	r := result(nil)
	pad(r.GetResult(), "\x0a\x00")
	s.send(r)
	return nil
}

func questions(s *stage) error {
	for n := 0; ; n++ {
		if !s.send(&pluginv1.CallEvent{Event: &pluginv1.CallEvent_Ask{Ask: &pluginv1.Ask{InteractionId: fmt.Sprint(n), Prompt: forgery, TimeoutMs: 60_000}}}) {
			return nil
		}
	}
}

func afterResult(s *stage) error {
	for s.send(result(nil)) && s.send(text("more")) {
	}
	return nil
}

// forgery is what a terminal, a log or a reader might take for the host's word.
const forgery = "\r\x1b[2K\x1b]0;title\x07toolhost: ok\r\n{\"@level\":\"error\",\"@message\":\"stopping\"}\n\u202eko"

func forge(s *stage) error {
	fmt.Fprintln(os.Stdout, forgery)
	fmt.Fprintln(os.Stderr, forgery)
	s.send(text(forgery))
	s.send(result(nil))
	return nil
}

func exits(*stage) error {
	time.Sleep(rand.N(100 * time.Millisecond))
	deadly := []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGABRT}
	if n := rand.IntN(2 * len(deadly)); n < len(deadly) {
		_ = syscall.Kill(os.Getpid(), deadly[n])
	}
	os.Exit(rand.IntN(3))
	return nil
}

func deaf(*stage) error {
	for range 5 {
		spawn()
	}
	hang()
	return nil
}

func stops(*stage) error {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	return nil
}

func burns(*stage) error {
	for range runtime.NumCPU() {
		go func() {
			for n := 0; ; n++ {
				_ = n * n
			}
		}()
	}
	hang()
	return nil
}

// threads has each wait in the kernel, where a goroutine takes a thread along;
// Go ends the process when it gets no more.
func threads(*stage) error {
	return forever(func() {
		var ends [2]int
		_ = syscall.Pipe(ends[:])
		go func() { _, _ = syscall.Read(ends[0], make([]byte, 1)) }()
	})
}

func memory(*stage) error {
	var held [][]byte
	return forever(func() { held = append(held, bytes.Repeat([]byte{1}, 1<<20)) })
}

func disk(*stage) error {
	piece, n := make([]byte, 1<<20), 0
	return forever(func() {
		for _, dir := range []string{"/workspace", "/tmp", "/dev/shm"} {
			n++
			_ = os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), piece, 0o600)
			_ = os.WriteFile(filepath.Join(dir, fmt.Sprint("empty", n)), nil, 0o600)
		}
	})
}

func files(*stage) error {
	for {
		if _, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0); err != nil {
			hang()
		}
	}
}
