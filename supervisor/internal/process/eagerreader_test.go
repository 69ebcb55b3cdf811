package process

import (
	"io"
	"os"
	"sync"
	"testing"
)

// What an eager reader was asked after it had looked at the pipe is not answered
// by that look.
func TestEmptyIsAnsweredByALaterLook(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	reader := newEagerReader(r, func() {})
	reader.handling = true // or it would be answered at once
	early := reader.empty()
	asked := reader.asked()
	if _, err := reader.readNow(make([]byte, 1)); err == nil {
		t.Fatal("there is something to read")
	}
	if _, err := w.WriteString("x"); err != nil { // before late is asked for
		t.Fatal(err)
	}
	late := reader.empty()
	reader.foundEmpty(asked)
	if !closed(early) || closed(late) {
		t.Fatalf("answered: early %v, late %v", closed(early), closed(late))
	}
	buf := make([]byte, 10)
	if n, err := reader.Read(buf); n != 1 || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	go func() {
		<-late
		w.Close()
	}()
	if _, err := reader.Read(buf); err != io.EOF || !closed(late) {
		t.Errorf("then %v", err)
	}
}

// Many that write and then ask have all been read by the time they are told.
func TestEmptyUnderLoad(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader := newEagerReader(r, func() {})
	var mu sync.Mutex
	var read [4]int
	var reading, asking sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 100)
		for {
			n, err := reader.Read(buf)
			mu.Lock()
			for _, b := range buf[:n] {
				read[b]++
			}
			mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	for id := range read {
		asking.Go(func() {
			for n := range 5_000 {
				if _, err := w.Write([]byte{byte(id)}); err != nil {
					t.Error(err)
					return
				}
				<-reader.empty()
				mu.Lock()
				got := read[id]
				mu.Unlock()
				if got != n+1 {
					t.Errorf("%d of %d bytes were read", got, n+1)
					return
				}
			}
		})
	}
	asking.Wait()
	w.Close()
	reading.Wait()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
