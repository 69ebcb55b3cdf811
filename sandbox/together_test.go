package sandbox

import (
	"errors"
	"syscall"
	"testing"
)

func TestTogether(t *testing.T) {
	got := together([]error{syscall.EMFILE, errors.New("other"), syscall.EMFILE})
	if got.Error() != "too many open files; other" || !errors.Is(got, syscall.EMFILE) {
		t.Error(got)
	}
}
