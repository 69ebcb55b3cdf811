package cgroup

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

var benchLimits = Limits{MemoryBytes: 512 << 20, Pids: 64, CPUPercent: 100}

// BenchmarkGroupLife is what a group adds to a call: all but the process.
func BenchmarkGroupLife(b *testing.B) {
	r := openRoot(b, Options{})
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		benchLife(b, r, n)
	}
}

// BenchmarkGroupLifeWithChild has a process in it: compare BenchmarkChild.
func BenchmarkGroupLifeWithChild(b *testing.B) {
	r := openRoot(b, Options{})
	for n := 0; b.Loop(); n++ {
		cmd := benchChild(b)
		g, err := r.NewGroup(strconv.Itoa(n), benchLimits)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Start(cmd.SysProcAttr, cmd.Start); err != nil {
			b.Fatal(err)
		}
		_ = cmd.Wait()
		benchEnd(b, g)
	}
}

// BenchmarkChild is the same process without a group.
func BenchmarkChild(b *testing.B) {
	for b.Loop() {
		if err := benchChild(b).Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkKill is from Kill of 51 processes to populated 0.
func BenchmarkKill(b *testing.B) {
	r := openRoot(b, Options{})
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		g, err := r.NewGroup(strconv.Itoa(n), Limits{})
		if err != nil {
			b.Fatal(err)
		}
		c := spawn(b, g, "tree", "50").expect("ready")
		time.Sleep(20 * time.Millisecond) // past the kernel's 10 ms between notices, as any call that is killed
		b.StartTimer()
		if err := g.Kill(); err != nil {
			b.Fatal(err)
		}
		if err := g.WaitEmpty(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = c.wait()
		benchEnd(b, g)
		b.StartTimer()
	}
}

func benchChild(b *testing.B) *exec.Cmd {
	cmd := exec.Command("/bin/true")
	if cmd.Err != nil {
		b.Skipf("missing: /bin/true: %v", cmd.Err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd
}

func benchLife(b *testing.B, r *Root, n int) {
	g, err := r.NewGroup(strconv.Itoa(n), benchLimits)
	if err != nil {
		b.Fatal(err)
	}
	if err := g.Start(&syscall.SysProcAttr{}, func() error { return nil }); err != nil {
		b.Fatal(err)
	}
	benchEnd(b, g)
}

func benchEnd(b *testing.B, g *Group) {
	if err := g.WaitEmpty(context.Background()); err != nil {
		b.Fatal(err)
	}
	if _, err := g.Usage(); err != nil {
		b.Fatal(err)
	}
	if err := g.Remove(); err != nil {
		b.Fatal(err)
	}
}
