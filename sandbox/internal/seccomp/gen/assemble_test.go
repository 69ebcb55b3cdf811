package main

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLongJumps assembles a program in which most jumps are out of an 8-bit offset's reach.
func TestLongJumps(t *testing.T) {
	const numbers = 600
	byNumber := map[uint32]decision{}
	for nr := range uint32(numbers) {
		switch nr % 4 {
		case 0:
			byNumber[nr] = outcome(nr)
		case 1:
			byNumber[nr] = whether(int(nr%6), outcome(nr), outcome(nr-1), nr)
		case 2:
			byNumber[nr] = whether(0, allow, outcome(nr+2)) // of no value
		}
	}
	program, err := assemble(architectures[0], byNumber)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(program, func(i unix.SockFilter) bool { return i.Code == jump && i.K > maxJump }) {
		t.Fatal("no jump is long: the test tests nothing")
	}
	for nr := range uint32(numbers) {
		for _, arg := range []uint64{uint64(nr), 0xffff} {
			want := [4]outcome{outcome(nr), outcome(nr - 1), outcome(nr + 2), hide}[nr%4]
			if nr%4 == 1 && arg == uint64(nr) {
				want = outcome(nr)
			}
			d := data{nr: nr, arch: nativeAMD64, args: [6]uint64{arg, arg, arg, arg, arg, arg}}
			if got := ask(t, program, d); got.outcome != want {
				t.Errorf("%d(%d) gives %#x, want %#x", nr, arg, got.outcome, want)
			}
		}
	}
}

// TestJumpBoundary places a branch at every distance around the longest jump, for each of its two targets.
func TestJumpBoundary(t *testing.T) {
	for filler := maxJump - 4; filler <= maxJump+4; filler++ {
		for between := range 4 {
			p := &program{placed: map[decision]address{}}
			no := p.at(outcome(1))
			for range between {
				p.write(unix.SockFilter{Code: and})
			}
			yes := p.at(outcome(2))
			for range filler {
				p.write(unix.SockFilter{Code: and})
			}
			p.step(load, offsetNumber, p.branch(ifEq, 7, yes, no))
			slices.Reverse(p.reversed)
			for nr, want := range map[uint32]outcome{7: 2, 8: 1} {
				if got := ask(t, p.reversed, data{nr: nr}); got.outcome != want {
					t.Errorf("filler %d, between %d: %d gives %d, want %d", filler, between, nr, got.outcome, want)
				}
			}
		}
	}
}

func TestAssembleRefusesTooLong(t *testing.T) {
	byNumber := map[uint32]decision{}
	for nr := range uint32(unix.BPF_MAXINSNS) {
		byNumber[nr] = outcome(nr)
	}
	if program, err := assemble(architectures[0], byNumber); err == nil {
		t.Errorf("assembled %d instructions", len(program))
	}
}

// TestWellFormed checks what the kernel checks when a filter is installed (seccomp_check_filter, bpf_check_classic).
func TestWellFormed(t *testing.T) {
	eachSubject(t, func(t *testing.T, s subject) {
		if err := wellFormed(s.filter.program); err != nil {
			t.Error(err)
		}
		if len(s.filter.decisions) < 300 {
			t.Errorf("only %d calls are decided", len(s.filter.decisions))
		}
	})
}

func wellFormed(program []unix.SockFilter) error {
	for at, i := range program {
		furthest := at + 1 + int(max(i.Jt, i.Jf))
		switch i.Code {
		case jump:
			furthest = at + 1 + int(i.K)
		case ret:
			furthest = at
		case load:
			if i.K%4 != 0 || i.K > 60 {
				return errors.New("load out of seccomp_data: " + disassemble(at, i))
			}
		}
		if furthest >= len(program) {
			return errors.New("leaves the program: " + disassemble(at, i))
		}
	}
	return nil
}
