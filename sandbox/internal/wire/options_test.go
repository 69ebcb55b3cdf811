package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var fullRoot = Root{
	Bytes: 1 << 20,
	Mounts: []Mount{
		{Kind: MountBind, Source: "/usr", Target: "/usr"},
		{Kind: MountStaged, Source: "/home/ä", Target: "/home/ä", Write: true, NoExec: true, Device: true, Optional: true},
		{Kind: MountTmpfs, Target: "/tmp", Bytes: math.MaxInt64, Inodes: 7, Mode: 0o1777},
		{Kind: MountProc, Target: "/proc"},
		{Kind: MountMask, Target: "/own", OnDevice: -1, OnInode: 7},
		{Kind: MountMqueue, Target: "/dev/mqueue"},
	},
	Links:    []Link{{"usr/bin", "/bin"}, {"\n", "\x00"}},
	Files:    []Text{{Path: "/etc/passwd", Content: "root:x:0:0\n"}, {"/run/secrets/a", "\x00\xff", true}, {}},
	Masked:   []string{"/proc/keys"},
	ReadOnly: []string{"/proc/sys", ""},
	Hostname: "h", Workspace: "/workspace", Loopback: true, CgroupNS: true, Landlock: 6, Seccomp: 1, TimerSlackNS: 1e6,
	Limits:    []Rlimit{{7, 1024}, {4, 0}, {-1, math.MinInt64}},
	Writable:  []string{"/tmp"},
	Addresses: []Network{{Low: 0xc6120001, Bits: 32}},
	Routes:    []Network{{V6: true, High: -1, Low: math.MinInt64, Bits: 64}},
	Listen:    []Listener{{Datagram: true, Address: Network{Low: 0x7f000035}, Port: 53}, {Port: math.MaxInt64}},
}

var optionSamples = []Options{
	{},
	{Namespaced: true, Tool: Tool{Path: "/bin/true"}},
	{Proc: true, Waits: true, Tool: Tool{Dir: "/"}},
	{Kill: true, Extra: 3, Held: 1, Lease: true, Staged: 2, Tool: Tool{TimerNS: math.MaxInt64}, SocketDir: "/run/toolhost/1"},
	{SocketDir: "a\nb\n\n", Tool: Tool{Dir: `"quoted" 'single' ` + "`back`", Path: `back\slash\n` + "\x00"}},
	{SocketDir: "\xff\xfe", Tool: Tool{Dir: "ä\u2028\t\r", Path: strings.Repeat("x", 1<<16)}},
	{Tool: Tool{Args: []string{"", "a", "\x00"}, Env: []string{"A=b"}}, Confine: true, Root: fullRoot},
}

func TestOptionsRoundTrip(t *testing.T) {
	for _, want := range optionSamples {
		got, err := decode(want.Encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

// An unset slice and an empty one are the same on the wire.
func TestEmptyListsAreReadAsNil(t *testing.T) {
	got, err := decode(Options{Tool: Tool{Args: []string{}, Env: []string{}}, Root: Root{Mounts: []Mount{}, Links: []Link{}, Limits: []Rlimit{}}}.Encode())
	if err != nil || !reflect.DeepEqual(got, Options{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Every proper beginning is refused, and so is anything after the end.
func TestCutOptionsAreRefused(t *testing.T) {
	good := Options{Tool: Tool{Args: []string{"a"}}, Confine: true, Root: fullRoot}.Encode()
	for n := range good {
		if o, err := decode(good[:n]); err == nil || !reflect.DeepEqual(o, Options{}) {
			t.Errorf("%d of %d bytes: got %+v, %v", n, len(good), o, err)
		}
	}
	for _, more := range []byte{0, 1, 0xff} {
		if _, err := decode(append(good[:len(good):len(good)], more)); err == nil {
			t.Errorf("byte %#x after the end was accepted", more)
		}
	}
}

func number(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

func TestMalformedOptionsAreRefused(t *testing.T) {
	good := Options{}.Encode()
	// The fields' places in the encoding of the zero value. An empty text is 9 bytes.
	const namespaced, extra, held, staged, timer, path, args = 0, 6 * 8, 7 * 8, 8 * 8, 9*8 + 9, 10*8 + 2*9, 10*8 + 3*9
	with := func(at int, v int64) []byte { return slices.Concat(good[:at], number(v), good[at+8:]) }
	for name, raw := range map[string][]byte{
		"flag of 2":        with(namespaced, 2),
		"flag of -1":       with(namespaced, -1),
		"negative extra":   with(extra, -1),
		"negative held":    with(held, -1),
		"negative staged":  with(staged, -1),
		"negative timer":   with(timer, math.MinInt64),
		"text without 0":   append(bytes.Clone(good[:path+8]), append([]byte{1}, good[path+9:]...)...),
		"negative length":  with(args, -1),
		"length past end":  with(args, int64(len(good))),
		"length of 2^62":   with(args, 1<<62),
		"length of MaxInt": with(args, math.MaxInt64),
	} {
		if o, err := decode(raw); err == nil || !reflect.DeepEqual(o, Options{}) {
			t.Errorf("%s: got %+v, %v", name, o, err)
		}
	}
	for _, at := range []int{extra, held, staged, timer} { // the places are what they are taken for
		if _, err := decode(with(at, 1)); err != nil {
			t.Errorf("field at %d: %v", at, err)
		}
	}
}

// A list's claimed length never allocates more than the message could hold.
func TestListsAreBounded(t *testing.T) {
	raw := number(1 << 40)
	raw = append(raw, make([]byte, 64)...)
	c := codec{buf: raw, decoding: true}
	var v []string
	if texts(&c, &v); !c.bad || v != nil {
		t.Errorf("list of %d, bad %v", len(v), c.bad)
	}
	raw = number(64)
	raw = append(raw, make([]byte, 64*9)...)
	c, v = codec{buf: raw, decoding: true}, nil
	if texts(&c, &v); c.bad || len(v) != 64 {
		t.Errorf("list of %d, bad %v", len(v), c.bad)
	}
}

func FuzzOptions(f *testing.F) {
	for _, o := range optionSamples {
		f.Add(o.Encode())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decode(raw)
		if err != nil {
			if !reflect.DeepEqual(got, Options{}) {
				t.Fatalf("%+v beside %v", got, err)
			}
			return
		}
		if got.Extra < 0 || got.Held < 0 || got.Staged < 0 || got.Tool.TimerNS < 0 {
			t.Fatalf("accepted %+v", got)
		}
		if again, err := decode(got.Encode()); err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}

func FuzzOptionsFields(f *testing.F) {
	f.Add(true, int64(1), int64(2), int64(3), int64(4), "s", "d", "p", "a", "k", "v")
	f.Add(false, int64(-1), int64(0), int64(math.MaxInt64), int64(math.MinInt64), "", "\x00", "\xff", "", "\n", "")
	f.Fuzz(func(t *testing.T, flag bool, extra, held, staged, timer int64, socketDir, dir, path, arg, name, value string) {
		want := Options{
			Namespaced: flag, Kill: !flag, Extra: extra, Held: held, Staged: staged, SocketDir: socketDir,
			Tool: Tool{TimerNS: timer, Dir: dir, Path: path, Args: []string{arg, name}, Env: []string{name + "=" + value}},
			Root: Root{Mounts: []Mount{{Source: path, Target: dir, Bytes: timer, Write: flag}}, Files: []Text{{name, value, flag}}, Limits: []Rlimit{{extra, held}}},
		}
		got, err := decode(want.Encode())
		if extra < 0 || held < 0 || staged < 0 || timer < 0 {
			if err == nil {
				t.Fatalf("accepted %+v", want)
			}
			return
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
		if tool, err := decodeTool(want.Tool.Encode()); err != nil || !reflect.DeepEqual(tool, want.Tool) {
			t.Fatalf("got %+v, %v; want %+v", tool, err, want.Tool)
		}
	})
}
