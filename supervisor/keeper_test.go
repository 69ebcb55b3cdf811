package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Whatever can be different about a kept process, its key is.
func TestKeepKeyHasEveryField(t *testing.T) {
	fresh := func() keepKey {
		return keepKey{args: []string{"a"}, env: []string{"E=1"}, secrets: []Secret{{Variable: "S"}}, limits: spec.Bounds{IOMax: []cgroup.IOMax{{Major: 8}}}}
	}
	if first := fresh().sum(); first != fresh().sum() {
		t.Fatal("one and the same has two keys")
	}
	checkLeaves(t, fresh(), func(changed reflect.Value) {
		if changed.Interface().(keepKey).sum() == fresh().sum() {
			t.Error("it is not in the key")
		}
	})
	split := fresh()
	split.args = []string{"a", ""}
	if split.sum() == fresh().sum() {
		t.Error("the number of arguments is not in the key")
	}
}

// checkLeaves runs check with a copy of value for each number, text and truth that it
// consists of, which alone is changed.
func checkLeaves(t *testing.T, value any, check func(changed reflect.Value)) {
	var walk func(name string, v reflect.Value, whole func() (root, same reflect.Value))
	walk = func(name string, v reflect.Value, whole func() (reflect.Value, reflect.Value)) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(name+"."+v.Type().Field(i).Name, v.Field(i), func() (reflect.Value, reflect.Value) {
					root, parent := whole()
					return root, settable(parent.Field(i))
				})
			}
		case reflect.Slice:
			if v.Len() == 0 {
				t.Errorf("%s is empty: give it an element", name)
			}
			for i := range v.Len() {
				walk(fmt.Sprintf("%s[%d]", name, i), v.Index(i), func() (reflect.Value, reflect.Value) {
					root, parent := whole()
					return root, parent.Index(i)
				})
			}
		default:
			t.Run(name, func(t *testing.T) {
				root, leaf := whole()
				change(t, leaf)
				check(root)
			})
		}
	}
	walk("", reflect.ValueOf(value), func() (reflect.Value, reflect.Value) {
		root := reflect.New(reflect.TypeOf(value)).Elem()
		root.Set(deepCopy(reflect.ValueOf(value)))
		return root, root
	})
}

func settable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// deepCopy copies slices too.
func deepCopy(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	cloneSlices(c)
	return c
}

func cloneSlices(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			cloneSlices(settable(v.Field(i)))
		}
	case reflect.Slice:
		if v.Len() > 0 {
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(c, v)
			v.Set(c)
		}
	}
}

func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "!")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint32:
		v.SetUint(v.Uint() + 1)
	default:
		t.Fatalf("a %s: say here how it changes", v.Kind())
	}
}

// What an eager reader was asked after it had looked at the pipe is not answered
// by that look.
func TestEmptyIsAnsweredByALaterLook(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	reader := newEagerReader(r, func() {})
	early := reader.empty()
	asked := reader.asked()
	if _, err := readNow(r, make([]byte, 1)); err == nil {
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

// fullKeeper has as many idle processes as it may, and notes whom it buries.
func fullKeeper(t *testing.T) (k *keeper, buried *[]*instance) {
	k, buried = newKeeper(admission.Limits{Queue: 1}), new([]*instance)
	var mu sync.Mutex
	k.bury = func(i *instance) {
		mu.Lock()
		defer mu.Unlock()
		*buried = append(*buried, i)
	}
	for n := range maxKept {
		l, err := k.join(fmt.Sprint(n), Keep{})
		if err != nil {
			t.Fatal(err)
		}
		l.instance = &instance{guests: guests{line: l}}
		l.part()
	}
	return k, buried
}

// What is evicted is ended also where the keeper is closed meanwhile, and once.
func TestEvictThenClose(t *testing.T) {
	for range 100 {
		k, buried := fullKeeper(t)
		if _, err := k.join("another", Keep{}); err != nil {
			t.Fatal(err)
		}
		k.close()
		distinct := map[*instance]bool{}
		for _, i := range *buried {
			distinct[i] = true
		}
		if len(*buried) != maxKept || len(distinct) != maxKept {
			t.Fatalf("%d ended, %d of them once: want %d", len(*buried), len(distinct), maxKept)
		}
	}
}

func TestTheOldestIsEvicted(t *testing.T) {
	k, buried := fullKeeper(t)
	again, err := k.join("0", Keep{})
	if err != nil {
		t.Fatal(err)
	}
	again.part() // now it is the youngest
	want := []*instance{k.lines["1"].instance, k.lines["2"].instance}
	for _, key := range []string{"a", "b"} {
		if _, err := k.join(key, Keep{}); err != nil {
			t.Fatal(err)
		}
	}
	k.ending.Wait()
	if len(*buried) != 2 || !slices.Contains(*buried, want[0]) || !slices.Contains(*buried, want[1]) {
		t.Errorf("not the two that have been idle for longest")
	}
	if again, ok := k.lines["0"]; !ok || time.Since(again.idle) < 0 {
		t.Error("the youngest is gone")
	}
}

// How long a call waits for a kept process is its own affair, not that of the
// first one in line.
func TestTheWaitForAKeptProcessIsTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(newKeeper(admission.Limits{Queue: 4, Wait: time.Second}), "", Keep{})
		leave, err := l.enter(t.Context(), false, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var patient, impatient error
		var waiting sync.WaitGroup
		waiting.Go(func() { _, impatient = l.enter(t.Context(), false, 2*time.Second) })
		waiting.Go(func() { _, patient = l.enter(t.Context(), true, time.Hour) })
		time.Sleep(time.Minute)
		leave()
		waiting.Wait()
		if _, refused := errors.AsType[*outcome.Refusal](impatient); !refused || patient != nil {
			t.Errorf("impatient %v, patient %v", impatient, patient)
		}
	})
}
