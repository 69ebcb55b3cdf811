package wire

import (
	"encoding/binary"
	"math"
	"reflect"
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
	},
	Links:    []Link{{"usr/bin", "/bin"}, {"\n", "\x00"}},
	Files:    []Text{{Path: "/etc/passwd", Content: "root:x:0:0\n"}, {"/run/secrets/a", "\x00\xff", true}, {}},
	Masked:   []string{"/proc/keys"},
	ReadOnly: []string{"/proc/sys", ""},
	Hostname: "h", Workspace: "/workspace", Loopback: true, CgroupNS: true, Landlock: 6, Seccomp: 1,
	Limits:   []Rlimit{{7, 1024}, {4, 0}, {-1, math.MinInt64}},
	Writable: []string{"/tmp"},
}

var optionSamples = []Options{
	{},
	{Namespaced: true, Path: "/bin/true"},
	{Proc: true, Dir: "/"},
	{Kill: true, Extra: 3, Held: 1, Staged: 2, TimerNS: math.MaxInt64, SocketDir: "/run/toolhost/1"},
	{SocketDir: "a\nb\n\n", Dir: `"quoted" 'single' ` + "`back`", Path: `back\slash\n` + "\x00"},
	{SocketDir: "\xff\xfe", Dir: "ä\u2028\t\r", Path: strings.Repeat("x", 1<<16)},
	{Args: []string{"", "a", "\x00"}, Env: []string{"A=b"}, Confine: true, Root: fullRoot},
}

func TestOptionsRoundTrip(t *testing.T) {
	for _, want := range optionSamples {
		got, err := Decode(want.Encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

// An unset slice and an empty one are the same on the wire.
func TestEmptyListsAreReadAsNil(t *testing.T) {
	got, err := Decode(Options{Args: []string{}, Env: []string{}, Root: Root{Mounts: []Mount{}, Links: []Link{}, Limits: []Rlimit{}}}.Encode())
	if err != nil || !reflect.DeepEqual(got, Options{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Every proper beginning is refused, and so is anything after the end.
func TestCutOptionsAreRefused(t *testing.T) {
	good := Options{Args: []string{"a"}, Confine: true, Root: fullRoot}.Encode()
	for n := range good {
		if o, err := Decode(good[:n]); err == nil || !reflect.DeepEqual(o, Options{}) {
			t.Errorf("%d of %d bytes: got %+v, %v", n, len(good), o, err)
		}
	}
	for _, more := range []byte{0, 1, 0xff} {
		if _, err := Decode(append(good[:len(good):len(good)], more)); err == nil {
			t.Errorf("byte %#x after the end was accepted", more)
		}
	}
}

func TestMalformedOptionsAreRefused(t *testing.T) {
	good := Options{}.Encode()
	// The fields' places in the encoding of the zero value: one byte each.
	const namespaced, extra, held, staged, timer, args = 0, 4, 5, 6, 7, 11
	with := func(at int, value ...byte) []byte {
		return append(append(append([]byte{}, good[:at]...), value...), good[at+1:]...)
	}
	overlong := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}
	for name, raw := range map[string][]byte{
		"flag of 2":        with(namespaced, binary.AppendVarint(nil, 2)...),
		"flag of -1":       with(namespaced, binary.AppendVarint(nil, -1)...),
		"negative extra":   with(extra, binary.AppendVarint(nil, -1)...),
		"negative held":    with(held, binary.AppendVarint(nil, -1)...),
		"negative staged":  with(staged, binary.AppendVarint(nil, -1)...),
		"negative timer":   with(timer, binary.AppendVarint(nil, math.MinInt64)...),
		"overlong number":  with(extra, overlong...),
		"negative length":  with(args, binary.AppendVarint(nil, -1)...),
		"length past end":  with(args, binary.AppendVarint(nil, int64(len(good)))...),
		"length of 2^62":   with(args, binary.AppendVarint(nil, 1<<62)...),
		"length of MaxInt": with(args, binary.AppendVarint(nil, math.MaxInt64)...),
	} {
		if o, err := Decode(raw); err == nil || !reflect.DeepEqual(o, Options{}) {
			t.Errorf("%s: got %+v, %v", name, o, err)
		}
	}
	for _, at := range []int{extra, held, staged, timer} { // the places are what they are taken for
		if _, err := Decode(with(at, binary.AppendVarint(nil, 1)...)); err != nil {
			t.Errorf("field at %d: %v", at, err)
		}
	}
}

// A list's claimed length never allocates more than the message could hold.
func TestListsAreBounded(t *testing.T) {
	raw := binary.AppendVarint(nil, 1<<40)
	raw = append(raw, make([]byte, 64)...)
	c := codec{buf: raw, decoding: true}
	var v []string
	if texts(&c, &v); !c.bad || v != nil {
		t.Errorf("list of %d, bad %v", len(v), c.bad)
	}
	raw = binary.AppendVarint(nil, 64)
	raw = append(raw, make([]byte, 64)...)
	c, v = codec{buf: raw, decoding: true}, nil
	if texts(&c, &v); c.bad || len(v) != 64 {
		t.Errorf("list of %d, bad %v", len(v), c.bad)
	}
}

func TestDescriptors(t *testing.T) {
	for _, c := range []struct {
		o                   Options
		kill, extra, staged int
	}{
		{Options{}, 5, 5, 5},
		{Options{Kill: true}, 5, 6, 6},
		{Options{Extra: 2}, 5, 5, 7},
		{Options{Held: 1}, 5, 5, 6},
		{Options{Kill: true, Extra: 2, Held: 1, Staged: 9}, 5, 6, 9},
	} {
		if c.o.KillFD() != c.kill || c.o.ExtraFD() != c.extra || c.o.StagedFD() != c.staged {
			t.Errorf("%+v: kill %d, extra %d, staged %d", c.o, c.o.KillFD(), c.o.ExtraFD(), c.o.StagedFD())
		}
	}
	if SpecFD != ControlFD+1 || firstFD != SpecFD+1 || ControlFD != 3 {
		t.Error("the fixed descriptors are not in a row after 0 to 2")
	}
}

func FuzzOptions(f *testing.F) {
	for _, o := range optionSamples {
		f.Add(o.Encode())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Decode(raw)
		if err != nil {
			if !reflect.DeepEqual(got, Options{}) {
				t.Fatalf("%+v beside %v", got, err)
			}
			return
		}
		if got.Extra < 0 || got.Held < 0 || got.Staged < 0 || got.TimerNS < 0 {
			t.Fatalf("accepted %+v", got)
		}
		if again, err := Decode(got.Encode()); err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}

func FuzzOptionsFields(f *testing.F) {
	f.Add(true, int64(1), int64(2), int64(3), int64(4), "s", "d", "p", "a", "k", "v")
	f.Add(false, int64(-1), int64(0), int64(math.MaxInt64), int64(math.MinInt64), "", "\x00", "\xff", "", "\n", "")
	f.Fuzz(func(t *testing.T, flag bool, extra, held, staged, timer int64, socketDir, dir, path, arg, name, value string) {
		want := Options{
			Namespaced: flag, Kill: !flag, Extra: extra, Held: held, Staged: staged, TimerNS: timer,
			SocketDir: socketDir, Dir: dir, Path: path, Args: []string{arg, name}, Env: []string{name + "=" + value},
			Root: Root{Mounts: []Mount{{Source: path, Target: dir, Bytes: timer, Write: flag}}, Files: []Text{{name, value, flag}}, Limits: []Rlimit{{extra, held}}},
		}
		got, err := Decode(want.Encode())
		if extra < 0 || held < 0 || staged < 0 || timer < 0 {
			if err == nil {
				t.Fatalf("accepted %+v", want)
			}
			return
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
	})
}
