package cgroup

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestField(t *testing.T) {
	const text = "populated 1\nfrozen 0\nbig 18446744073709551615\nhuge 99999999999999999999999\nodd\nminus -1\nlast 7"
	for key, want := range map[string]int64{
		"populated": 1, "frozen": 0, "big": math.MaxInt64, "huge": math.MaxInt64, "odd": 0, "minus": 0, "last": 7, "pop": 0, "": 0,
	} {
		if got := field(text, key); got != want {
			t.Errorf("field(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestParseInt(t *testing.T) {
	for text, want := range map[string]int64{"42\n": 42, "max\n": math.MaxInt64, "": 0, "x": 0} {
		if got := parseInt(text); got != want {
			t.Errorf("parseInt(%q) = %d, want %d", text, got, want)
		}
	}
	if usec(math.MaxInt64) < 0 || usec(1500) != 1500*time.Microsecond {
		t.Error("usec is wrong")
	}
}

func TestParseIO(t *testing.T) {
	r, w := parseIOStat("254:0 rbytes=4096 wbytes=512 rios=1 wios=1 dbytes=9 dios=9\n8:0 rbytes=1 wbytes=2\n7:0\n")
	if r != 4097 || w != 514 {
		t.Errorf("io.stat: %d, %d", r, w)
	}
	r, w = parseBlkio("254:0 Read 4096\n254:0 Write 512\n254:0 Sync 4096\n8:0 Read 1\n254:0 Total 4608\nTotal 4609\n")
	if r != 4097 || w != 512 {
		t.Errorf("blkio: %d, %d", r, w)
	}
	if r, _ := parseBlkio("1:0 Read 9223372036854775807\n2:0 Read 5\n"); r != math.MaxInt64 {
		t.Errorf("sum %d", r)
	}
}

func TestParsePids(t *testing.T) {
	if got := parsePids("1\n0\n42\n\nx\n-3\n7"); !slices.Equal(got, []int{1, 42, 7}) {
		t.Errorf("parsePids = %v", got)
	}
}

func TestAppendEntries(t *testing.T) {
	if got := appendEntries(nil, []byte{1, 2, 3}, true); got != nil {
		t.Errorf("entries %v", got)
	}
	d, err := openDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	var want []string
	for _, name := range []string{"a", "b.c", "supervisor"} {
		if err := d.mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	got, err := d.names(true)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("names = %v, %v", got, err)
	}
	if files, err := d.names(false); err != nil || len(files) != 0 {
		t.Errorf("files = %v, %v", files, err)
	}
}

func TestAttribution(t *testing.T) {
	for c, want := range map[oomCounts][2]int64{
		{}:                 {0, 0},
		{own: 1, kills: 3}: {3, 0},
		{kills: 3}:         {0, 3},
		{own: 2}:           {0, 0},
	} {
		if own, ancestor := attributeOOM(c); own != want[0] || ancestor != want[1] {
			t.Errorf("attributeOOM(%+v) = %d, %d", c, own, ancestor)
		}
	}
	for e, want := range map[pidsEvidence][2]int64{
		{hits: 4, peak: 20, limit: 20}:             {4, 0},
		{hits: 4, peak: 21, limit: 20}:             {4, 0}, // the forking thread on v1
		{hits: 4, peak: 19, limit: 20}:             {0, 4},
		{hits: 4, peak: 0, limit: 20}:              {0, 4}, // nothing proves the own limit
		{hits: 4, peak: 50}:                        {0, 4}, // no limit of our own
		{hits: 4, peak: 3, limit: 20, exact: true}: {4, 0},
		{peak: 20, limit: 20}:                      {0, 0},
	} {
		if own, ancestor := attributePids(e); own != want[0] || ancestor != want[1] {
			t.Errorf("attributePids(%+v) = %d, %d", e, own, ancestor)
		}
	}
}

func FuzzParseControlFiles(f *testing.F) {
	f.Add("254:0 rbytes=4096 wbytes=512\n254:0 Read 1\noom_kill 3\n12\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, w := parseIOStat(text)
		r1, w1 := parseBlkio(text)
		c := parseMemoryEvents(text)
		if min(r, w, r1, w1, c.own, c.kills, field(text, "populated"), parseInt(text)) < 0 {
			t.Errorf("a negative count from %q", text)
		}
		for _, pid := range parsePids(text) {
			if pid <= 0 {
				t.Errorf("pid %d", pid)
			}
		}
		appendEntries(nil, []byte(text), true)
	})
}
