package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/testenv/stage"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

const (
	floodStage = "flood"
	// maxFloodBytes and maxFloodFiles are what a daemon has at most while it is flooded.
	maxFloodBytes = 256 << 20
	maxFloodFiles = 3000
)

// floods are the programs of Debian's that are let loose, for some seconds each, on an
// address and with a token.
var floods = []struct {
	name    string
	command func(address, token string) []string
	// good finds in what it says that the daemon has answered.
	good *regexp.Regexp
}{
	{"requests", func(address, token string) []string {
		return []string{"h2load", "--h1", "--clients=100", "--threads=1", "--duration=10", "--header=Authorization: Bearer " + token, "http://" + address + "/api/turns/active"}
	}, regexp.MustCompile(`status codes: [1-9]\d{2,} 2xx, 0 3xx, 0 4xx, 0 5xx`)},
	{"requests without a token", func(address, _ string) []string {
		return []string{"h2load", "--h1", "--clients=100", "--threads=1", "--duration=10", "http://" + address + "/api/turns/active"}
	}, regexp.MustCompile(`status codes: 0 2xx, 0 3xx, [1-9]\d{2,} 4xx, 0 5xx`)},
	{"HTTP/2 by prior knowledge", func(address, token string) []string {
		return []string{"h2load", "--clients=100", "--threads=1", "--duration=5", "--header=Authorization: Bearer " + token, "http://" + address + "/api/turns/active"}
	}, regexp.MustCompile(`status codes: 0 2xx`)}, // which is not spoken without TLS
	{"slow headers", func(address, _ string) []string { return slowHTTP(address, "-H", "-i", "5") }, slowDone},
	{"slow bodies", func(address, _ string) []string { // of the one route that reads anybody's
		return slowHTTP(address+"/api/login", "-B", "-i", "5", "-s", "8192", "-t", "POST", "-f", "application/json")
	}, slowDone},
	{"slow reads", func(address, _ string) []string {
		return slowHTTP(address+"/api/health", "-X", "-w", "1", "-y", "2", "-n", "5", "-z", "8", "-k", "3")
	}, slowDone},
	{"overlapping ranges", func(address, _ string) []string { return slowHTTP(address+"/api/health", "-R") }, slowDone},
}

var slowDone = regexp.MustCompile(`Exit status:`)

// slowHTTP opens 1,000 connections, 200 a second, for 15 s.
func slowHTTP(place string, args ...string) []string {
	return append([]string{"slowhttptest", "-c", "1000", "-r", "200", "-l", "15", "-p", "3", "-u", "http://" + place}, args...)
}

// TestFloods: while others' programs flood the daemon, the calls of a second client go on
// and are all ok; what the daemon has is bounded, and it ends in time.
func TestFloods(t *testing.T) {
	stage.Of(t, floodStage)
	w := newWorld(t, "turn: {maxCalls: 100000}\n")
	w.Listen = "127.0.0.1:0"
	d := w.daemon()
	attacker, other := bearerOf(t, d, "attacker"), bearerOf(t, d, "other")
	for _, flood := range floods {
		t.Run(flood.name, func(t *testing.T) {
			watch := other.callOn(t)
			seen := d.watched(t)
			line := flood.command(strings.TrimPrefix(attacker.url, "http://"), attacker.token)
			out, err := exec.CommandContext(wait.Context(t), line[0], line[1:]...).CombinedOutput()
			if err != nil && flood.good != slowDone { // slowhttptest's status says what it thinks of the server
				t.Errorf("%v\n%s", err, out)
			}
			if !flood.good.Match(out) {
				t.Errorf("the flood did not go as it should:\n%s", out)
			}
			bytes, files := seen()
			t.Logf("%d calls beside it were ok; the daemon had at most %d MiB and %d descriptors; %s", watch(), bytes>>20, files, summary(string(out)))
			if bytes > maxFloodBytes || files > maxFloodFiles {
				t.Errorf("the daemon had %d MiB and %d descriptors", bytes>>20, files)
			}
			wait.Until(t, "the connections are closed", func() bool { return d.files(t) < 100 })
		})
	}
	// It ends while 500 connections are there that have sent half a request.
	for range 500 {
		c, err := net.Dial("tcp", strings.TrimPrefix(attacker.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET /api/turns HTTP/1.1\r\nHost:")
	}
	d.endsInTime()
}

var figures = regexp.MustCompile(`(?m)^(finished in .*|requests: .*|status codes: .*|connected: .*|closed: .*)$`)

func summary(out string) string {
	return strings.Join(figures.FindAllString(out, -1), "; ")
}

// callOn makes one call after the other; what it returns ends that, and says how many
// there were.
func (a *agent) callOn(t *testing.T) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(wait.Context(t))
	done := make(chan struct{})
	var made atomic.Int64
	turn := a.begin()
	go func() {
		defer close(done)
		for ctx.Err() == nil && made.Load() < 50_000 {
			n := made.Add(1)
			call := api.Call{ID: strconv.FormatInt(n, 10), Tool: "lines", Arguments: fmt.Appendf(nil, `{"text":"%d"}`, n)}
			if o := a.run(turn, call); o.err != nil || !o.result.OK() {
				t.Errorf("call %d: %v %+v", n, o.err, o.result)
				return
			}
		}
	}()
	return func() int64 {
		cancel()
		<-done
		if err := a.client.End(wait.Context(t), turn); err != nil {
			t.Error(err)
		}
		return made.Load()
	}
}

// files counts the daemon's descriptors.
func (p *process) files(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "fd"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// watched looks at the daemon until what it returns is called, which gives the most of
// each that was seen.
func (p *process) watched(t *testing.T) (stop func() (bytes, files int)) {
	t.Helper()
	most := make(chan [2]int)
	over := make(chan struct{})
	go func() {
		var bytes, files int
		for {
			raw, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
			if found := resident.FindSubmatch(raw); found != nil {
				n, _ := strconv.Atoi(string(found[1]))
				bytes = max(bytes, n<<10)
			}
			list, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "fd"))
			files = max(files, len(list))
			select {
			case <-over:
				most <- [2]int{bytes, files}
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() (int, int) {
		close(over)
		m := <-most
		return m[0], m[1]
	}
}
