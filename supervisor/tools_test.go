package supervisor_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/sandbox"
)

type args struct {
	N    int    `json:"n,omitempty"`
	Text string `json:"text,omitempty"`
	Line bool   `json:"line,omitempty"`
}

type answer struct {
	N int `json:"n"`
}

// hang waits for SIGKILL. It sleeps because Go ends a process in which nothing
// can ever happen again.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func tool[Out any](name string, do func(context.Context, args, *plugin.Output) (Out, error)) plugin.Registered {
	return plugin.NewTool(plugin.Tool{Name: name, TimeoutArgument: map[string]string{"echo": "n"}[name]}, do)
}

func testTools() []plugin.Registered {
	if line := os.Getenv("LAB_EARLY"); line != "" {
		go reachEarly(line)
	}
	return []plugin.Registered{
		tool("echo", func(_ context.Context, in args, out *plugin.Output) (answer, error) {
			return answer{in.N}, out.Text(in.Text)
		}),
		tool("reach", reach),
		tool("fail", func(context.Context, args, *plugin.Output) (answer, error) {
			return answer{}, errors.New("no luck today")
		}),
		tool("panic", func(context.Context, args, *plugin.Output) (answer, error) { panic("oh dear") }),
		tool("goexit", func(context.Context, args, *plugin.Output) (answer, error) { runtime.Goexit(); return answer{}, nil }),
		tool("ask", func(ctx context.Context, in args, out *plugin.Output) (answer, error) {
			_, err := out.Ask(ctx, plugin.Question{Prompt: "really?"})
			return answer{}, err
		}),
		tool("wait", func(ctx context.Context, _ args, out *plugin.Output) (answer, error) {
			out.Text("waiting")
			<-ctx.Done()
			return answer{}, context.Cause(ctx)
		}),
		tool("late", func(ctx context.Context, in args, out *plugin.Output) (answer, error) {
			<-ctx.Done()
			return answer{in.N}, out.Text("just in time")
		}),
		tool("stream", streamAndHang),
		tool("pieces", func(_ context.Context, in args, out *plugin.Output) (answer, error) {
			for range in.N << 20 / len(in.Text) {
				if err := out.Text(in.Text); err != nil {
					return answer{}, err
				}
			}
			out.Progress(-1, "all sent")
			hang()
			return answer{}, nil
		}),
		tool("silent", func(context.Context, args, *plugin.Output) (answer, error) { hang(); return answer{}, nil }),
		tool("beat", func(_ context.Context, in args, out *plugin.Output) (answer, error) {
			for range in.N {
				out.Heartbeat()
				time.Sleep(20 * time.Millisecond)
			}
			return answer{in.N}, nil
		}),
		tool("exit", func(_ context.Context, in args, _ *plugin.Output) (answer, error) {
			os.Exit(in.N)
			return answer{}, nil
		}),
		tool("signal", func(_ context.Context, in args, _ *plugin.Output) (answer, error) {
			syscall.Kill(os.Getpid(), syscall.Signal(in.N))
			hang()
			return answer{}, nil
		}),
		tool("flood", flood),
		tool("burn", func(context.Context, args, *plugin.Output) (answer, error) { burn(); return answer{}, nil }),
		tool("memory", func(_ context.Context, in args, _ *plugin.Output) (answer, error) {
			fill(in.N << 20)
			return answer{in.N}, nil
		}),
		tool("children", children),
		tool("crowd", crowd),
		tool("leak", leak),
		tool("askSecret", func(ctx context.Context, _ args, out *plugin.Output) (answer, error) {
			value, err := out.Ask(ctx, plugin.Question{Prompt: "password?", Secret: true})
			var password string
			if err == nil {
				err = json.Unmarshal(value, &password)
			}
			fmt.Println(password)
			return answer{}, errors.Join(err, out.Text("thanks for "+password))
		}),
		tool("sees", func(_ context.Context, in args, out *plugin.Output) (answer, error) {
			entries, err := os.ReadDir(in.Text)
			program, err2 := os.Stat("/proc/self/exe")
			if err = errors.Join(err, err2); err != nil {
				return answer{}, err
			}
			return answer{len(entries)}, out.Text(fmt.Sprint(program.Size()))
		}),
		tool("count", func(context.Context, args, *plugin.Output) (answer, error) {
			return answer{int(served.Add(1))}, nil
		}),
		tool("workspace", func(context.Context, args, *plugin.Output) (answer, error) {
			err := os.WriteFile(filepath.Join(sandbox.Workspace, rand.Text()), nil, 0o600)
			there, looked := os.ReadDir(sandbox.Workspace)
			return answer{max(len(there), int(served.Add(1)))}, errors.Join(err, looked)
		}),
		tool("dying", func(context.Context, args, *plugin.Output) (answer, error) {
			time.AfterFunc(50*time.Millisecond, func() { os.Exit(0) })
			return answer{int(served.Add(1))}, nil
		}),
		tool("stdin", func(_ context.Context, in args, _ *plugin.Output) (answer, error) {
			before, err := unix.FcntlInt(0, unix.F_GETSIG, 0)
			if err == nil {
				_, err = unix.FcntlInt(0, unix.F_SETSIG, in.N)
			}
			return answer{before}, err
		}),
		tool("noisy", func(_ context.Context, in args, _ *plugin.Output) (answer, error) {
			fmt.Println("to stdout: " + in.Text)
			fmt.Fprintln(os.Stderr, "to stderr: "+in.Text)
			return answer{}, nil
		}),
	}
}

// streamAndHang sends n messages, flushes and hangs.
func streamAndHang(ctx context.Context, in args, out *plugin.Output) (answer, error) {
	for i := range in.N {
		if err := out.Text(fmt.Sprintf("message %d\n", i)); err != nil {
			return answer{}, err
		}
	}
	if err := out.Flush(ctx); err != nil {
		return answer{}, err
	}
	out.Progress(-1, "flushed")
	hang()
	return answer{}, nil
}

// flood writes n MiB to stdout, with or without newlines.
func flood(_ context.Context, in args, _ *plugin.Output) (answer, error) {
	fill := byte('x')
	if in.Line {
		fill = '\n'
	}
	chunk := bytes.Repeat([]byte{fill}, 1<<20)
	for range in.N {
		if _, err := os.Stdout.Write(chunk); err != nil {
			return answer{}, err
		}
	}
	return answer{in.N}, nil
}

// leak gives its secret away in every way.
func leak(_ context.Context, _ args, out *plugin.Output) (answer, error) {
	secret := os.Getenv("TOKEN")
	if raw, err := os.ReadFile(secret); err == nil {
		secret = string(raw)
	}
	if len(secret) < 10 {
		return answer{}, errors.New("no secret")
	}
	out.Text("it is " + secret[:5])
	out.Text(secret[5:] + ", and " + secret[:3])
	out.JSON(map[string]string{"secret": secret})
	out.Link("file:///"+secret, secret, "")
	out.Blob("x", []byte(secret))
	out.Progress(-1, "with "+secret)
	out.Log(secret)
	for _, to := range []*os.File{os.Stdout, os.Stderr} {
		fmt.Fprint(to, "0123456789", secret[:7])
		fmt.Fprintln(to, secret[7:], strings.Repeat("x", 100), secret)
	}
	if err := os.WriteFile("/workspace/"+strings.ReplaceAll(secret, "/", ""), nil, 0o600); err != nil {
		return answer{}, err
	}
	return answer{}, errors.New("cannot log in with " + secret)
}

func burn() {
	for i := 0; ; i++ {
		_ = i * i
	}
}

var held [][]byte

// served counts the calls of this process.
var served atomic.Int32

func fill(n int) {
	for range n >> 20 {
		held = append(held, bytes.Repeat([]byte{1}, 1<<20))
	}
}

const roleVar = "SUPERVISOR_TEST_ROLE"

// child starts this binary in a role.
func child(role string, session bool, stdout io.Writer) *exec.Cmd {
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stdout = stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	return cmd
}

// children starts n children in the role that text names. It reports when all
// are ready, and hangs; with line, it returns at once, or when those that wait for a signal do.
func children(_ context.Context, in args, out *plugin.Output) (answer, error) {
	signal.Ignore(syscall.SIGTERM)
	r, w, err := os.Pipe()
	if err != nil {
		return answer{}, err
	}
	started := 0
	for i := range in.N {
		if child(in.Text, i%2 == 0, w).Start() == nil {
			started++
		}
	}
	w.Close()
	out.Text("started " + strconv.Itoa(started))
	if in.Line && in.Text != fillsOnTerm {
		return answer{started}, nil
	}
	_, err = io.ReadFull(r, make([]byte, started))
	if in.Line {
		return answer{started}, err
	}
	if err == nil {
		out.Progress(-1, "ready")
	}
	hang()
	return answer{}, nil
}

// crowd ends once it can start no more children.
func crowd(context.Context, args, *plugin.Output) (answer, error) {
	for child("deaf", false, nil).Start() == nil {
	}
	os.Exit(1)
	return answer{}, nil
}

func deaf() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
}

func ready() { os.Stdout.Write([]byte{'r'}) }

const fillsOnTerm = "memory on SIGTERM"

// playChild is what a tool's child does; it never returns.
func playChild(role string) {
	switch role {
	case "deaf":
		deaf()
		ready()
	case "orphan": // leaves a deaf grandchild in a session of its own
		deaf()
		child("deaf", true, os.Stdout).Start()
		os.Exit(0)
	case "stopped":
		ready()
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "memory":
		ready()
		fill(1 << 30)
	case fillsOnTerm:
		terms := make(chan os.Signal, 1)
		signal.Notify(terms, syscall.SIGTERM)
		ready()
		<-terms
		fill(1 << 30)
	case "burn":
		deaf()
		ready()
		burn()
	case "handler": // answers SIGTERM by forking
		terms := make(chan os.Signal, 1)
		signal.Notify(terms, syscall.SIGTERM)
		ready()
		for range terms {
			child("deaf", true, nil).Start()
		}
	case "counter": // says how often it is asked to end
		terms := make(chan os.Signal, 9)
		signal.Notify(terms, syscall.SIGTERM)
		ready()
		for range terms {
			os.Stdout.Write([]byte{'t'})
		}
	case "treadmill": // a new generation as fast as it goes
		deaf()
		ready()
		for {
			next := child("treadstep", true, nil)
			if next.Start() == nil {
				next.Wait()
			}
		}
	case "treadstep":
		child("deafshort", true, nil).Start()
		os.Exit(0)
	case "deafshort":
		deaf()
		time.Sleep(50 * time.Millisecond)
		os.Exit(0)
	}
	hang()
}
