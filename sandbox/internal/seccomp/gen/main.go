// Command gen writes the programs of package seccomp, a C header for the launcher and the same in Go for the tests of that
// package, for each architecture; run it by go generate in that package's folder.
//
// It takes Docker's default profile as it resolves without capabilities on Linux 5.14 or later (docker.go), lays the
// project's own policy over it (policy.go), looks up the numbers of the system calls (numbers.go), and assembles one
// binary search over all numbers (assemble.go).
package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// architecture is one that the launcher is built for.
type architecture struct {
	name  string // GOARCH, which is also its name in Docker's profile
	audit uint32 // seccomp_data.arch of its own calls
	x32   bool   // has calls with x32Bit set, under the same audit value
}

// x32Bit marks calls of the x32 ABI (__X32_SYSCALL_BIT of asm/unistd.h), which have structures of their own.
const x32Bit = 0x40000000

var architectures = []architecture{
	{name: "amd64", audit: unix.AUDIT_ARCH_X86_64, x32: true},
	{name: "arm64", audit: unix.AUDIT_ARCH_AARCH64},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	tables, err := findNumbers()
	if err != nil {
		return err
	}
	for _, arch := range architectures {
		files, err := generate(arch, tables)
		if err != nil {
			return err
		}
		for name, source := range files {
			if err := os.WriteFile(name, source, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// launcher is the folder of the launcher's source, seen from package seccomp's.
const launcher = "../../launcher/"

// generate returns the files of arch by their paths from package seccomp's folder.
func generate(arch architecture, tables map[string]numbers) (map[string][]byte, error) {
	var filters []filter
	for _, strict := range []bool{false, true} {
		f, err := build(arch, tables, strict)
		if err != nil {
			return nil, err
		}
		filters = append(filters, f)
	}
	inGo, err := render(filters)
	return map[string][]byte{"filter_" + arch.name + "_test.go": inGo, launcher + "filter_" + arch.name + ".h": renderC(filters)}, err
}

// filter is a finished program and what it was made from.
type filter struct {
	strict    bool
	decisions map[string]decision // by name; the calls of this architecture that are not simply unknown
	program   []unix.SockFilter
}

// build makes one filter.
func build(arch architecture, tables map[string]numbers, strict bool) (filter, error) {
	decisions, err := decide(resolveDocker(arch.name), tables, strict)
	if err != nil {
		return filter{}, fmt.Errorf("cannot decide for %s: %w", arch.name, err)
	}
	byNumber := map[uint32]decision{}
	for name, d := range decisions {
		nr, ok := tables[arch.name][name]
		if !ok {
			delete(decisions, name)
			continue
		}
		byNumber[nr] = d
	}
	program, err := assemble(arch, byNumber)
	if err != nil {
		return filter{}, fmt.Errorf("cannot assemble for %s: %w", arch.name, err)
	}
	return filter{strict, decisions, program}, nil
}
