package daemon

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

const smaps = `00400000-00500000 r-xp 00000000 08:01 123 /bin/toolhost
Rss:                 100 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me sd
00500000-00600000 r--p 00100000 08:01 123 /bin/toolhost
Anonymous:             4 kB
Swap:                  0 kB
00600000-00700000 r--p 00200000 08:01 123 /bin/toolhost
Anonymous:             0 kB
Swap:                  8 kB
00700000-00800000 rw-p 00300000 08:01 123 /bin/toolhost
Anonymous:             0 kB
Swap:                  0 kB
00800000-00900000 r--p 00000000 08:01 124 /lib/other
Anonymous:             0 kB
Swap:                  0 kB
00900000-00a00000 r--p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
00a00000-00b00000 r--p 00400000 08:01 123 /bin/toolhost
Anonymous:             0 kB
Swap:                  0 kB
00b00000-00c00000 r--p 00400000 08:01 123 /bin/toolhost
`

// Only what the file still holds is given up.
func TestUntouched(t *testing.T) {
	got := untouched(strings.NewReader(smaps), "/bin/toolhost")
	if len(got) != 2 || got[0] != (mapping{0x400000, 0x500000}) || got[1] != (mapping{0xa00000, 0xb00000}) {
		t.Errorf("%x", got)
	}
}

// The program goes on as before.
func TestShrink(t *testing.T) {
	for range 3 {
		shrink()
	}
}

// What was used and is not any more is returned: seen by a process without other tests.
func TestWhatIsInMemory(t *testing.T) {
	const alone = "DAEMON_TEST_MEMORY"
	if os.Getenv(alone) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	before := inMemory()
	used := bytes.Repeat([]byte{1}, 64<<20)
	if now := inMemory(); before == 0 || now < before+60<<20 {
		t.Errorf("%d bytes of %d more are in memory than %d", now-before, len(used), before)
	}
	runtime.KeepAlive(used)
	used = nil
	shrink()
	if now := inMemory(); !raceDetector && now > before+30<<20 { // which keeps what it knows of them
		t.Errorf("%d bytes are in memory, and were %d before", now, before)
	}
}
