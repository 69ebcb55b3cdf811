package prefault

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

const (
	child = "PREFAULT_TEST"
	page  = 4 << 10
)

// TestMain counts, in a child, the pages behind the frontier that are mapped before a
// test can have touched them.
func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	os.Stdout.WriteString(strconv.Itoa(resident(uintptr(unsafe.Pointer(frontier)))))
}

func resident(at uintptr) (n int) {
	var pages [ahead / page]byte
	syscall.Syscall(syscall.SYS_MINCORE, at, ahead, uintptr(unsafe.Pointer(&pages)))
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

// The heap begins at a random page of its first region, so that now and then the region
// ends too early to show anything.
func TestTheStartOfTheHeapIsMapped(t *testing.T) {
	for range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := strconv.Atoi(strings.TrimSpace(string(out))); n == ahead/page {
			return
		}
	}
	t.Fatal("no process of 20 had its heap mapped ahead")
}

func TestEitherWayMapsAhead(t *testing.T) {
	const setDisabled = 41                     // PR_SET_THP_DISABLE(2const)
	for _, disabled := range []uintptr{1, 0} { // ordinary pages, a huge one
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setDisabled, disabled, 0, 0, 0, 0); errno != 0 {
			t.Fatal(errno)
		}
		region, err := syscall.Mmap(-1, 0, 3*huge, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		at := (uintptr(unsafe.Pointer(&region[0])) + huge - 1) &^ (huge - 1)
		region[at-uintptr(unsafe.Pointer(&region[0]))] = 1
		mapAhead(at)
		if n := resident(at); n != ahead/page {
			t.Errorf("huge pages disabled %d: %d pages of %d are mapped", disabled, n, ahead/page)
		}
		syscall.Munmap(region)
	}
}
