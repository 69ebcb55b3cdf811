package seccomp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/sandbox/internal/seccomp"
)

// killedBySeccomp says whether err is that of a process which SIGSYS ended.
func killedBySeccomp(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGSYS
}

func TestX32IsKilled(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile seccomp.Profile) {
		if out, err := under(t, profile, "x32", self(t)).CombinedOutput(); !killedBySeccomp(err) {
			t.Errorf("a call of the x32 ABI ends with %v\n%s", err, out)
		}
	})
}

// exit7 is i386 code for exit(7).
var exit7 = []byte{0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80} // mov $1, %eax; mov $7, %ebx; int $0x80

func Test386IsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exit7")
	if err := os.WriteFile(path, elf386(exit7), 0o700); err != nil {
		t.Fatal(err)
	}
	err := exec.Command(path).Run()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("this kernel runs no 386 programs (CONFIG_IA32_EMULATION, ia32_emulation=)")
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 {
		t.Fatalf("without a filter: %v, want exit code 7", err)
	}
	eachProfile(t, func(t *testing.T, profile seccomp.Profile) {
		if out, err := under(t, profile, "", path).CombinedOutput(); !killedBySeccomp(err) {
			t.Errorf("a 386 program ends with %v\n%s", err, out)
		}
	})
}

// elf386 makes an executable of code: an ELF header, one program header, the code (elf(5)).
func elf386(code []byte) []byte {
	const base, headers = 0x08048000, 52 + 32
	size := uint32(headers + len(code))
	b := bytes.NewBuffer([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, field := range []any{
		uint16(2), uint16(3), uint32(1), // ET_EXEC, EM_386, EV_CURRENT
		uint32(base + headers), uint32(52), uint32(0), uint32(0), // entry, phoff, shoff, flags
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0), // sizes and counts
		uint32(1), uint32(0), uint32(base), uint32(base), // PT_LOAD, offset, vaddr, paddr
		size, size, uint32(5), uint32(0x1000), // filesz, memsz, PF_R|PF_X, align
	} {
		_ = binary.Write(b, binary.LittleEndian, field) // a bytes.Buffer never fails
	}
	return append(b.Bytes(), code...)
}
