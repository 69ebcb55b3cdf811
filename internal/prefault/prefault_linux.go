package prefault

import (
	"syscall"
	"unsafe"
)

const (
	// Advice of madvise(2), since Linux 5.14 and 6.1. Neither changes a byte.
	populateWrite = 23
	collapse      = 25

	huge = 2 << 20

	// span is the size of the smallest spans that the heap consists of.
	span = 8 << 10

	// ahead is what a tool of package plugin uses from its start to its first call.
	ahead = 1 << 20
)

// frontier is the first span that had never been in use: those behind it will be used next.
// It is kept, lest it be on the stack.
var frontier *[span]byte

func init() {
	frontier = new([span]byte)
	frontier[0] = 0 // may need a page table, too
	mapAhead(uintptr(unsafe.Pointer(frontier)))
}

// mapAhead maps what lies behind at. Where the heap's region ends early, so does it.
func mapAhead(at uintptr) {
	start := at &^ (huge - 1)
	if madvise(start, huge, collapse) {
		madvise(start+huge, huge, syscall.MADV_HUGEPAGE)
		return
	}
	madvise(at, ahead, populateWrite)
}

func madvise(at, size, advice uintptr) bool {
	_, _, errno := syscall.RawSyscall(syscall.SYS_MADVISE, at, size, advice)
	return errno == 0
}
