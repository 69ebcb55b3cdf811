package fifo

import (
	"os"
	"syscall"
	"testing"
)

func TestHeld(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	pipe, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 5} {
		for name, held := range map[string]func(syscall.RawConn) (int, error){"Held": Held, "HeldRaw": HeldRaw} {
			if n, err := held(pipe); n != want || err != nil {
				t.Errorf("%s: %d bytes, want %d; %v", name, n, want, err)
			}
		}
		_, _ = w.WriteString("hello")
	}
	r.Close()
	if _, err := Held(pipe); err == nil {
		t.Error("no error for a closed pipe")
	}
}

func TestUnheard(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	pipe, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.WriteString("hello")
	if is, err := Unheard(pipe); is || err != nil {
		t.Errorf("with a reader: %v, %v", is, err)
	}
	r.Close()
	if is, err := Unheard(pipe); !is || err != nil {
		t.Errorf("without one: %v, %v", is, err)
	}
	if n, err := Held(pipe); n != 5 || err != nil {
		t.Errorf("it holds %d bytes, %v", n, err)
	}
	w.Close()
	if is, err := Unheard(pipe); is || err == nil {
		t.Error("a closed pipe is said to be unheard")
	}
}
