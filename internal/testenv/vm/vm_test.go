package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/vm/protocol"
)

func TestArchiveIsNewc(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	a := newArchive(&out)
	if err := a.file("/a/f", source, 0o755); err != nil {
		t.Fatal(err)
	}
	a.symlink("l", "a/f")
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	const zero = "00000000"
	const tail = zero + zero + zero + zero // the device and rdev fields
	want := "070701" + "00000001" + "000041ed" + zero + zero + "00000001" + zero + zero + tail + "00000002" + zero + "a\x00" +
		"070701" + "00000002" + "000081ed" + zero + zero + "00000001" + zero + "00000005" + tail + "00000004" + zero + "a/f\x00\x00\x00" + "hello\x00\x00\x00" +
		"070701" + "00000003" + "0000a1ff" + zero + zero + "00000001" + zero + "00000003" + tail + "00000002" + zero + "l\x00" + "a/f\x00" +
		"070701" + "00000001" + zero + zero + zero + "00000001" + zero + zero + tail + "0000000b" + zero + "TRAILER!!!\x00\x00\x00\x00"
	if out.String() != want {
		t.Errorf("wrote\n%q, want\n%q", out.String(), want)
	}
}

func TestArchiveKeepsTheFirstError(t *testing.T) {
	a := newArchive(io.Discard)
	a.entry("f", typeFile, 5, strings.NewReader("four"))
	if err := a.close(); err == nil {
		t.Error("a file that shrank while it was packed went unnoticed")
	}
}

func TestWatchCollectsResults(t *testing.T) {
	want := protocol.Result{Package: "./a", Passed: 1}
	console := "boot\r\n" + strings.Repeat("x", 200<<10) + "\r\n" + want.String() + "\r\n" + protocol.DoneLine(1) + "\r\n"
	var shown strings.Builder
	report, err := watch(strings.NewReader(console), &shown)
	if err != nil {
		t.Fatal(err)
	}
	if problems := report.Problems([]string{"./a"}); len(problems) > 0 {
		t.Error(problems)
	}
	if want := strings.ReplaceAll(console, "\r", ""); shown.String() != want {
		t.Error("the console was not shown as it came")
	}
}

func TestKernelPackage(t *testing.T) {
	got, err := kernelPackage("linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-44-cloud-amd64\n")
	if err != nil || got != "linux-image-6.1.0-44-cloud-amd64" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := kernelPackage("linux-image-cloud-amd64\n"); err == nil {
		t.Errorf("got %q from no dependency", got)
	}
}
