package text

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 4, "äöüß"}, {"äöüß", 3, "äö…"}, {"ab", 1, "…"}, {"\xff\xffbc", 3, "\uFFFD\uFFFD…"}} {
		if got := Cut(c.s, c.most); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aä", 2, "a"}, {"\xff", 1, "\xff"}, {"", 0, ""}} {
		if got := Bytes(c.s, c.most); got != c.want {
			t.Errorf("Bytes(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestLabels(t *testing.T) {
	for want, of := range map[string]map[string]string{"": nil, "a=b": {"a": "b"}, "a= and b=c=d": {"b": "c=d", "a": ""}} {
		if got := Labels(of); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCause(t *testing.T) {
	want := errors.New("why")
	for _, err := range []error{want, &fs.PathError{Err: want}, &os.LinkError{Err: want}, &os.SyscallError{Err: want}} {
		if got := Cause(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestWhole(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "a": 0, "é": 0, "a\xc3": 1, "日": 0, "\xe6": 1, "x\xe6\x97": 2, "😀": 0, "\xf0\x9f\x98": 3, "\xff": 0, "\x80\x80\x80\x80": 0, "\xe6a": 0,
	} {
		whole, next := Whole(nil, []byte(s))
		if got := len(next); got != want || string(whole)+string(next) != s {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
		if whole, again := Whole(next, nil); len(whole) > 0 || string(again) != string(next) {
			t.Errorf("%q, and nothing more: %q and %q", s, whole, again)
		}
	}
}

func TestMountPath(t *testing.T) {
	for in, want := range map[string]string{`/a\040b`: "/a b", `\134040`: `\040`, `\9`: `\9`, `x\`: `x\`, `\777`: `\777`, `\011\012\043`: "\t\n#"} {
		if got := MountPath(in); got != want {
			t.Errorf("%s is %q, want %q", in, got, want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for s, want := range map[string]string{"": "", "one": "one", "one\ntwo": "one", "\n\r\n\tone\ntwo": "\tone", " \n": ""} {
		if got := FirstLine(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
