package bench

import (
	"context"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugin"
	"github.com/toolhost/toolhost/supervisor"
)

// The test binary is the tool in every contest, so all start the same program.
func TestMain(m *testing.M) {
	supervisor.RelayMain()
	if len(os.Args) > 1 && os.Args[1] == echoServer {
		serveEcho()
		return
	}
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		plugin.Serve(plugin.NewTool(plugin.Tool{Name: "echo"}, func(_ context.Context, in message, out *plugin.Output) (message, error) {
			if os.Getenv("TOOLHOST_BENCH_SLEEP") != "" {
				select {} // deaf
			}
			if at := os.Getenv(networkVar); at != "" {
				took, err := measure(at, in.Text)
				if err != nil {
					return in, err
				}
				return in, out.Text(took.String())
			}
			if os.Getenv("TOOLHOST_BENCH_BURN") != "" {
				burn()
			}
			if os.Getenv("TOOLHOST_BENCH_TREE") != "" {
				forkTree()
				if err := out.Text("begun"); err != nil {
					return in, err
				}
				select {}
			}
			return in, out.Text("begun")
		}))
		return
	}
	if os.Getenv(burnerVar) != "" {
		spin()
	}
	if socket := os.Getenv(bareVar); socket != "" {
		serveBare(socket)
	}
	os.Exit(m.Run())
}

// burnerVar makes the test binary a process that only burns.
const burnerVar = "TOOLHOST_BENCH_BURNER"

func spin() {
	for n := 0; ; n++ {
		_ = n
	}
}

// burn keeps four threads busy for good.
func burn() {
	runtime.GOMAXPROCS(4)
	for range 3 {
		go spin()
	}
	spin()
}

type message struct {
	Text string `json:"text"`
}

var self = func() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}()

func newHost(b *testing.B) *supervisor.Supervisor {
	host, err := supervisor.New(context.Background(), supervisor.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { host.Close() })
	return host
}

// settle waits until nothing of earlier calls is under way.
func settle(host *supervisor.Supervisor) {
	for host.Host().Running != 0 {
		time.Sleep(50 * time.Microsecond)
	}
}

// contest runs ours and theirs in turn and reports the medians, their ratio, and what ours
// adds to theirs in a turn; it returns the ratio with the number of turns. between, which is not timed, keeps either from paying for what the other does
// after its answer; nil if that is nothing.
func contest(b *testing.B, ours, theirs func(*testing.B), between func()) (turns int, ratio float64) {
	var a, z []time.Duration
	timed := func(f func(*testing.B)) time.Duration {
		began := time.Now()
		f(b)
		took := time.Since(began)
		if between != nil {
			between()
		}
		return took
	}
	timed(ours) // what is found out once is not compared
	timed(theirs)
	for b.Loop() {
		a = append(a, timed(ours))
		z = append(z, timed(theirs))
	}
	b.ReportMetric(micros(added(a, z)), "added-µs")
	return len(a), report(b, a, z)
}

// added is how much longer one of them takes in a turn, in the median: what else the
// machine does falls on both.
func added(ours, theirs []time.Duration) time.Duration {
	var more []time.Duration
	for i := range ours {
		more = append(more, ours[i]-theirs[i])
	}
	return median(more)
}

func report(b *testing.B, ours, theirs []time.Duration) (ratio float64) {
	ratio = float64(median(ours)) / float64(median(theirs))
	b.ReportMetric(micros(median(ours)), "ours-µs")
	b.ReportMetric(micros(median(theirs)), "theirs-µs")
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(0, "ns/op")
	return ratio
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[min(len(d)*p/100, len(d)-1)]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
