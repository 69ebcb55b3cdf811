package main

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// data is struct seccomp_data (linux/seccomp.h).
type data struct {
	nr, arch uint32
	ip       uint64
	args     [6]uint64
}

// answer is what a program said, and whether it looked at an argument for that.
type answer struct {
	outcome
	sawArgument bool
}

// interpret runs a program on d as the kernel would (Documentation/networking/filter.rst).
func interpret(program []unix.SockFilter, d data) (answer, error) {
	memory, err := binary.Append(nil, binary.LittleEndian, d)
	if err != nil {
		return answer{}, err
	}
	var a uint32
	var sawArgument bool
	for pc := 0; pc >= 0 && pc < len(program); pc++ {
		i := program[pc]
		met := false
		switch i.Code {
		case 0x06: // BPF_RET | BPF_K
			return answer{outcome(i.K), sawArgument}, nil
		case 0x20: // BPF_LD | BPF_W | BPF_ABS
			a = binary.LittleEndian.Uint32(memory[i.K:])
			sawArgument = sawArgument || i.K >= 16
			continue
		case 0x54: // BPF_ALU | BPF_AND | BPF_K
			a &= i.K
			continue
		case 0x05: // BPF_JMP | BPF_JA
			pc += int(i.K)
			continue
		case 0x15: // BPF_JMP | BPF_JEQ | BPF_K
			met = a == i.K
		case 0x35: // BPF_JMP | BPF_JGE | BPF_K
			met = a >= i.K
		case 0x45: // BPF_JMP | BPF_JSET | BPF_K
			met = a&i.K != 0
		default:
			return answer{}, fmt.Errorf("instruction %d has unknown code %#x", pc, i.Code)
		}
		if met {
			pc += int(i.Jt)
		} else {
			pc += int(i.Jf)
		}
	}
	return answer{}, fmt.Errorf("the program has no end")
}

// ask is interpret for programs that must not fail.
func ask(t *testing.T, program []unix.SockFilter, d data) answer {
	t.Helper()
	a, err := interpret(program, d)
	if err != nil {
		t.Fatalf("%+v: %v", d, err)
	}
	return a
}
