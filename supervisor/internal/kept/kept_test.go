package kept

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/cgroup"
	"github.com/toolhost/toolhost/supervisor/internal/admission"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/internal/tasks"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// Whatever can be different about a kept process, its key is.
func TestKeyHasEveryField(t *testing.T) {
	fresh := func() Key {
		return Key{args: []string{"a"}, env: []string{"E=1"}, secrets: []spec.Secret{{Variable: "S"}}, limits: spec.Bounds{IOMax: []cgroup.IOMax{{Major: 8}}}}
	}
	if first := fresh().sum(); first != fresh().sum() {
		t.Fatal("one and the same has two keys")
	}
	checkLeaves(t, fresh(), func(changed reflect.Value) {
		if changed.Interface().(Key).sum() == fresh().sum() {
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

// fullPool has as many idle processes as it may, and notes which ones it buries.
func fullPool(t *testing.T) (p *Pool, buried *[]*stay) {
	t.Helper()
	var ts tasks.Tasks
	p, buried = NewPool(admission.Limits{Queue: 1}, &ts, Source{}), new([]*stay)
	var mu sync.Mutex
	p.destroy = func(s *stay) {
		mu.Lock()
		defer mu.Unlock()
		*buried = append(*buried, s)
	}
	var made []*Line
	for n := range maxKept {
		l, err := p.join(fmt.Sprint(n), Key{}, spec.Keep{})
		if err != nil {
			t.Fatal(err)
		}
		l.ask(func() { l.current = &stay{kept: true} })
		l.hold() // until the end of the test
		l.Part()
		made = append(made, l)
	}
	t.Cleanup(func() {
		for _, l := range made {
			l.unhold()
		}
		for _, left := range ts.Wait(time.Minute) {
			t.Errorf("%q goes on", left)
		}
	})
	return p, buried
}

// What is evicted is ended also where the pool is closed meanwhile, and once.
func TestEvictThenClose(t *testing.T) {
	for range 100 {
		p, buried := fullPool(t)
		l, err := p.join("another", Key{}, spec.Keep{})
		if err != nil {
			t.Fatal(err)
		}
		evicted := maxKept - len(p.all()) + 1
		l.Part()
		p.Close()
		distinct := map[*stay]bool{}
		for _, s := range *buried {
			distinct[s] = true
		}
		if evicted != 1 || len(*buried) != maxKept || len(distinct) != maxKept {
			t.Fatalf("%d evicted, %d ended, %d of them once: want 1 and %d", evicted, len(*buried), len(distinct), maxKept)
		}
	}
}

func TestTheOldestIsEvicted(t *testing.T) {
	p, buried := fullPool(t)
	again, err := p.join("0", Key{}, spec.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	again.Part() // now it is the youngest
	var want []*stay
	for _, key := range []string{"1", "2"} {
		l := p.lines[key]
		l.ask(func() { want = append(want, l.current) })
	}
	for _, key := range []string{"a", "b"} {
		l, err := p.join(key, Key{}, spec.Keep{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Part)
	}
	p.ending.Wait()
	if len(*buried) != 2 || !slices.Contains(*buried, want[0]) || !slices.Contains(*buried, want[1]) {
		t.Errorf("not the two that have been idle for longest")
	}
	if _, ok := p.lines["0"]; !ok {
		t.Error("the youngest is gone")
	}
}

// How long a call waits for a kept process is its own affair, not that of the
// first one in line.
func TestTheWaitForAKeptProcessIsTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewPool(admission.Limits{Queue: 4, Wait: time.Second}, nil, Source{}).newLine("", Key{}, spec.Keep{})
		leave, err := l.Enter(t.Context(), false, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var patient, impatient error
		var waiting sync.WaitGroup
		waiting.Go(func() { _, impatient = l.Enter(t.Context(), false, 2*time.Second) })
		waiting.Go(func() { _, patient = l.Enter(t.Context(), true, time.Hour) })
		time.Sleep(time.Minute)
		leave()
		waiting.Wait()
		if _, refused := errors.AsType[*outcome.Refusal](impatient); !refused || patient != nil {
			t.Errorf("impatient %v, patient %v", impatient, patient)
		}
	})
}

// What a kept process is asked after its line has ended is answered by nobody.
func TestNobodyWaitsForALineThatHasEnded(t *testing.T) {
	var ts tasks.Tasks
	p := NewPool(admission.Limits{}, &ts, Source{})
	l, err := p.join("", Key{}, spec.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	l.Part()
	if left := ts.Wait(time.Minute); len(left) > 0 {
		t.Fatalf("%q goes on", left)
	}
	l.ask(func() { t.Error("it was done all the same") })
	if n := len(p.all()); n != 0 {
		t.Errorf("%d lines are left", n)
	}
}
