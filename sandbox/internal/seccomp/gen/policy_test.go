package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// subject is one generated filter and what is needed to judge it.
type subject struct {
	arch   architecture
	names  map[uint32]string
	table  numbers
	filter filter
}

func (s subject) String() string {
	if s.filter.strict {
		return s.arch.name + "/strict"
	}
	return s.arch.name + "/default"
}

// call is a native call of a name.
func (s subject) call(name string, args ...uint64) data {
	d := data{nr: s.table[name], arch: s.arch.audit}
	copy(d.args[:], args)
	return d
}

func (s subject) check(t *testing.T, d data) {
	t.Helper()
	want := want(s.arch.name, s.names, s.filter.strict, d)
	if got := ask(t, s.filter.program, d); got.outcome != want {
		t.Fatalf("%s: %s %+v gives %s, want %s", s, s.names[d.nr], d, describe(uint32(got.outcome)), describe(uint32(want)))
	}
}

var subjects = sync.OnceValues(func() ([]subject, error) {
	tables, err := findNumbers()
	if err != nil {
		return nil, err
	}
	var all []subject
	for _, arch := range architectures {
		names := map[uint32]string{}
		for name, nr := range tables[arch.name] {
			names[nr] = name
		}
		for _, strict := range []bool{false, true} {
			f, err := build(arch, tables, strict)
			if err != nil {
				return nil, err
			}
			all = append(all, subject{arch, names, tables[arch.name], f})
		}
	}
	return all, nil
})

func eachSubject(t *testing.T, test func(t *testing.T, s subject)) {
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.String(), func(t *testing.T) { test(t, s) })
	}
}

// extremes are numbers that no call has.
var extremes = []uint32{
	1 << 12, 1 << 16, math.MaxInt32, 1 << 31, math.MaxUint32, math.MaxUint32 - 1, x32Bits - 1, x32Bits, x32Bits + 59, 0xf0001,
}

func TestEveryNumber(t *testing.T) {
	eachSubject(t, func(t *testing.T, s subject) {
		calls := slices.Clone(extremes)
		for nr := range uint32(1024) {
			calls = append(calls, nr, x32Bits|nr)
		}
		for _, nr := range calls {
			for _, arg := range []uint64{0, 1, 1 << 32, math.MaxUint64} {
				s.check(t, data{nr: nr, arch: s.arch.audit, args: [6]uint64{arg, arg, arg, arg, arg, arg}})
			}
			for _, other := range []uint32{0, 0x40000003, 0x40000028, nativeAMD64, nativeARM64, s.arch.audit ^ 1<<31} {
				s.check(t, data{nr: nr, arch: other})
			}
		}
	})
}

// A call that runs whatever its arguments must be answered from the kernel's bitmap.
func TestPlainCallsLoadNoArgument(t *testing.T) {
	eachSubject(t, func(t *testing.T, s subject) {
		for name, nr := range s.table {
			d := data{nr: nr, arch: s.arch.audit}
			locks := s.filter.strict && (name == "flock" || name == "fcntl")
			if stated[name] == "allow" && !locks && ask(t, s.filter.program, d).sawArgument {
				t.Errorf("%s loads an argument", name)
			}
		}
	})
}

func TestStatementNamesCalls(t *testing.T) {
	all, err := subjects()
	if err != nil {
		t.Fatal(err)
	}
	for name := range stated {
		if !slices.ContainsFunc(all, func(s subject) bool { _, ok := s.table[name]; return ok }) {
			t.Errorf("testdata/policy.txt names %q, which is not a system call", name)
		}
	}
}

// argumentCases are spelt out in numbers: what a caller passes, and what it gets.
var argumentCases = []struct {
	name string
	args []uint64
	want outcome
}{
	{"clone", []uint64{0x3d0f00}, yes}, // pthread_create(3)
	{"clone", []uint64{0x01200011}, yes},
	{"clone", []uint64{0x4111}, yes}, // vfork of os/exec
	{"clone", []uint64{0x10000000 | 17}, eperm},
	{"clone", []uint64{0x1_0002_0000}, eperm},
	{"clone", []uint64{0x1020_0000_0000}, yes},
	{"clone", []uint64{0x80}, yes}, // a signal number, not CLONE_NEWTIME
	{"clone3", []uint64{0, 0}, enosys},
	{"io_uring_setup", nil, enosys},
	{"ioctl", []uint64{0, 0x5401}, yes},
	{"ioctl", []uint64{0, 0x5412}, eperm},
	{"ioctl", []uint64{0, 0x1_0000_5412}, eperm},
	{"ioctl", []uint64{0, 0xffffffff_0000541c}, eperm},
	{"ioctl", []uint64{0x5412, 0}, yes},
	{"prctl", []uint64{35}, eperm},
	{"prctl", []uint64{1<<32 | 35}, eperm},
	{"prctl", []uint64{38, 1}, yes},
	{"personality", []uint64{0x0040000}, eperm},
	{"personality", []uint64{0x0400000}, eperm},
	{"personality", []uint64{1<<32 | 0x40000}, eperm},
	{"personality", []uint64{math.MaxUint64}, yes},
	{"socket", []uint64{1, 1, 0}, yes},
	{"socket", []uint64{2, 0x80801, 0}, yes},
	{"socket", []uint64{10, 2, 58}, yes},
	{"socket", []uint64{2, 1, 262}, yes},
	{"socket", []uint64{2, 1, 256}, eprotonosupp},       // IPPROTO_SMC
	{"socket", []uint64{2, 1, 132}, eprotonosupp},       // IPPROTO_SCTP
	{"socket", []uint64{2, 3, 1}, eperm},                // SOCK_RAW
	{"socket", []uint64{2, 10, 0x300}, eperm},           // SOCK_PACKET
	{"socket", []uint64{2, 5, 132}, esocktnosupp},       // SOCK_SEQPACKET
	{"socket", []uint64{10, 0x80806, 33}, esocktnosupp}, // SOCK_DCCP
	{"socket", []uint64{16, 3, 0}, yes},
	{"socket", []uint64{16, 3, 15}, eprotonosupp}, // NETLINK_KOBJECT_UEVENT
	{"socket", []uint64{16, 3, 1<<32 | 15}, eprotonosupp},
	{"socket", []uint64{17, 3, 0}, eafnosupport}, // AF_PACKET
	{"socket", []uint64{38, 5, 0}, eafnosupport}, // AF_ALG
	{"socket", []uint64{40, 1, 0}, eafnosupport}, // AF_VSOCK
	{"socket", []uint64{1<<32 | 40, 1, 0}, eafnosupport},
	{"socket", []uint64{44, 3, 0}, eafnosupport}, // AF_XDP
	{"socketpair", []uint64{1, 1, 0}, yes},
	{"socketpair", []uint64{30, 1, 0}, eafnosupport}, // AF_TIPC
	{"prlimit64", []uint64{0, 7}, yes},
	{"prlimit64", []uint64{1, 7}, eperm},
	{"prlimit64", []uint64{1 << 32, 7}, yes},
	{"sched_setaffinity", []uint64{1}, eperm},
	{"sched_setattr", []uint64{0xffffffff}, eperm},
	{"setpriority", []uint64{0, 0, 19}, yes},
	{"setpriority", []uint64{0, 1, 19}, eperm},
	{"setpriority", []uint64{1, 0, 19}, eperm},
	{"setpriority", []uint64{2, 0, 19}, eperm},
	{"ioprio_set", []uint64{1, 0}, yes},
	{"ioprio_set", []uint64{1, 1}, eperm},
	{"ioprio_set", []uint64{3, 0}, eperm},
	{"ptrace", []uint64{0}, eperm},
	{"adjtimex", []uint64{0}, eperm},
}

func TestArguments(t *testing.T) {
	eachSubject(t, func(t *testing.T, s subject) {
		for _, c := range argumentCases {
			d := s.call(c.name, c.args...)
			if got := ask(t, s.filter.program, d); got.outcome != c.want {
				t.Errorf("%s(%#x) gives %s, want %s", c.name, c.args, describe(uint32(got.outcome)), describe(uint32(c.want)))
			}
			s.check(t, d)
		}
	})
}

func TestLocks(t *testing.T) {
	eachSubject(t, func(t *testing.T, s subject) {
		locked := yes
		if s.filter.strict {
			locked = eperm
		}
		for _, c := range []struct {
			name    string
			command uint64
			want    outcome
		}{
			{"flock", 2, locked},
			{"fcntl", 6, locked},
			{"fcntl", 7, locked},
			{"fcntl", 37, locked},
			{"fcntl", 38, locked},
			{"fcntl", 1024, eperm},
			{"fcntl", 1040, eperm},
			{"fcntl", 1<<32 | 6, locked},
			{"fcntl", 2, yes},
			{"fcntl", 3, yes},
			{"fcntl", 5, yes},
			{"fcntl", 1030, yes},
			{"fcntl", 1033, yes},
		} {
			if got := ask(t, s.filter.program, s.call(c.name, 3, c.command)); got.outcome != c.want {
				t.Errorf("%s(3, %#x) gives %s, want %s", c.name, c.command, describe(uint32(got.outcome)), describe(uint32(c.want)))
			}
		}
	})
}

// TestEveryBit sets each bit of each argument by itself, and all but it.
func TestEveryBit(t *testing.T) {
	eachSubject(t, func(t *testing.T, s subject) {
		for name, nr := range s.table {
			if stated[name] != "ask" && name != "fcntl" {
				continue
			}
			for bit := range 64 {
				for arg := range 3 {
					d := data{nr: nr, arch: s.arch.audit}
					d.args[arg] = 1 << bit
					s.check(t, d)
					d.args[arg] = ^d.args[arg]
					s.check(t, d)
				}
			}
		}
	})
}

// TestRandom asks of values near those that decide, in calls that are mostly decided by them.
func TestRandom(t *testing.T) {
	const draws = 50_000
	eachSubject(t, func(t *testing.T, s subject) {
		random := rand.New(rand.NewPCG(1, 2))
		pick := func(from []uint32) uint32 { return from[random.IntN(len(from))] }
		numbers := []uint32{s.table["fcntl"], s.table["flock"]}
		for name, kind := range stated {
			if nr, ok := s.table[name]; ok && kind == "ask" {
				numbers = append(numbers, nr)
			}
		}
		slices.Sort(numbers)
		values := []uint32{6, 7, 37, 38, 1024, 1040} // of locks
		for _, c := range argumentCases {
			for _, v := range c.args {
				values = append(values, uint32(v), uint32(v)+1, uint32(v)-1)
			}
		}
		for range draws {
			d := data{nr: pick(numbers), arch: s.arch.audit, ip: random.Uint64()}
			if random.IntN(8) == 0 {
				d.nr = random.Uint32N(1024)
			}
			for i := range d.args {
				d.args[i] = uint64(pick([]uint32{0, 0, 1, math.MaxUint32, random.Uint32()}))<<32 | uint64(pick(values))
			}
			s.check(t, d)
		}
	})
}

func FuzzPolicy(f *testing.F) {
	all, err := subjects()
	if err != nil {
		f.Fatal(err)
	}
	for which, s := range all {
		for _, c := range argumentCases {
			d := s.call(c.name, c.args...)
			f.Add(uint8(which), d.nr, d.arch, d.args[0], d.args[1], d.args[2])
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, nr, arch uint32, first, second, third uint64) {
		s := all[int(which)%len(all)]
		s.check(t, data{nr: nr, arch: arch, args: [6]uint64{first, second, third, first, second, third}})
	})
}
