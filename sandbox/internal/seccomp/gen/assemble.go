package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h). Both architectures are little-endian: the low half of an argument
// comes first.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
	argBytes     = 8
)

// maxJump is the longest conditional jump: its offsets have 8 bits, that of an unconditional one 32.
const maxJump = 255

// Instructions of classic BPF (linux/filter.h).
const (
	load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	and    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	jump   = unix.BPF_JMP | unix.BPF_JA
	ifEq   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ifGe   = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	ifBits = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ret    = unix.BPF_RET | unix.BPF_K
)

// program is written from its last instruction to its first. Classic BPF jumps only forward, so each target is placed,
// and its distance known, before the jump to it is written.
type program struct {
	reversed []unix.SockFilter
	placed   map[decision]address
}

// address is an instruction by its index in program.reversed.
type address int

// assemble makes the program that decides by number; a number that has no decision is hidden.
//
// Numbers are found by binary search. A call that is allowed whatever its arguments must be found so without loading
// any, because the kernel (since 5.11) then answers it from a bitmap and no longer runs the program.
func assemble(arch architecture, byNumber map[uint32]decision) ([]unix.SockFilter, error) {
	p := &program{placed: map[decision]address{}}
	next := p.search(spans(byNumber))
	if arch.x32 {
		next = p.branch(ifBits, x32Bit, p.at(kill), next)
	}
	next = p.step(load, offsetNumber, next)
	next = p.branch(ifEq, arch.audit, next, p.at(kill))
	p.step(load, offsetArch, next)
	if len(p.reversed) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("%d instructions, over %d", len(p.reversed), unix.BPF_MAXINSNS)
	}
	slices.Reverse(p.reversed)
	return p.reversed, nil
}

// span is a run of numbers with the same decision; it ends where the next one starts.
type span struct {
	first uint32
	decision
}

// spans cuts all 32-bit numbers into as few spans as possible, in ascending order.
func spans(byNumber map[uint32]decision) []span {
	all := []span{{0, hide}}
	add := func(s span) {
		last := &all[len(all)-1]
		if last.first == s.first {
			last.decision = s.decision
		} else if last.decision != s.decision {
			all = append(all, s)
		}
	}
	for _, nr := range slices.SortedFunc(maps.Keys(byNumber), cmp.Compare[uint32]) {
		add(span{nr, byNumber[nr]})
		add(span{nr + 1, hide})
	}
	return slices.CompactFunc(all, func(a, b span) bool { return a.decision == b.decision })
}

// search writes a binary search for the number in the accumulator.
func (p *program) search(all []span) address {
	if len(all) == 1 {
		return p.at(all[0].decision)
	}
	middle := len(all) / 2
	high := p.search(all[middle:])
	low := p.search(all[:middle])
	return p.branch(ifGe, all[middle].first, high, low)
}

// at returns where d is, after placing it if it is nowhere yet.
func (p *program) at(d decision) address {
	if _, ok := p.placed[d]; !ok {
		p.placed[d] = d.place(p)
	}
	return p.placed[d]
}

func (o outcome) place(p *program) address { return p.write(unix.SockFilter{Code: ret, K: uint32(o)}) }

func (q *question) place(p *program) address {
	yes, next := p.at(q.yes), p.at(q.no)
	for _, value := range slices.Backward(q.values) {
		next = p.branch(ifEq, value, yes, next)
	}
	if q.mask != 0 {
		next = p.step(and, q.mask, next)
	}
	return p.step(load, offsetArgs+uint32(q.arg)*argBytes, next)
}

// step writes an instruction that goes on at next.
func (p *program) step(code uint16, k uint32, next address) address {
	if p.distance(next) > 0 {
		p.jump(next)
	}
	return p.write(unix.SockFilter{Code: code, K: k})
}

// branch writes a conditional jump. A target out of its reach is reached through a jump behind it; each of the two may
// push the other's target one instruction away.
func (p *program) branch(code uint16, k uint32, yes, no address) address {
	if p.distance(yes) >= maxJump {
		yes = p.jump(yes)
	}
	if p.distance(no) >= maxJump {
		no = p.jump(no)
	}
	return p.write(unix.SockFilter{Code: code, Jt: uint8(p.distance(yes)), Jf: uint8(p.distance(no)), K: k})
}

func (p *program) jump(to address) address {
	return p.write(unix.SockFilter{Code: jump, K: uint32(p.distance(to))})
}

// distance is how many instructions the next one to be written has to skip in order to reach target.
func (p *program) distance(target address) int { return len(p.reversed) - 1 - int(target) }

func (p *program) write(i unix.SockFilter) address {
	p.reversed = append(p.reversed, i)
	return address(len(p.reversed) - 1)
}
