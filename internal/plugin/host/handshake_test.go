package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

const testDir = "/run/t/plugin-dir42"

func TestCheckHandshake(t *testing.T) {
	const good = "1|1|unix|" + testDir + "/plugin7|grpc\n"
	for _, test := range []struct {
		name, line string
		err        error
		reason     string // part of the refusal; "" where the line is accepted as good
	}{
		{"plain", good, nil, ""},
		{"carriage return", strings.TrimSuffix(good, "\n") + "\r\n", nil, ""},
		{"certificate", strings.TrimSuffix(good, "\n") + "|TUlJQg|true\n", nil, ""},
		{"nothing", "", io.EOF, "without the go-plugin handshake line"},
		{"good but unfinished", good, io.ErrUnexpectedEOF, "without the go-plugin handshake line"},
		{"too long", good, bufio.ErrBufferFull, "longer than 4096 bytes"},
		{"another program", "hello, world\n", nil, "not a go-plugin handshake"},
		{"four fields", "1|1|unix|" + testDir + "/plugin7\n", nil, "not a go-plugin handshake"},
		{"core version", "2|1|unix|" + testDir + "/plugin7|grpc\n", nil, "not a go-plugin handshake"},
		{"leading space", " " + good, nil, "not a go-plugin handshake"},
		{"version", "1|2|unix|" + testDir + "/plugin7|grpc\n", nil, `protocol version "2", this host speaks 1`},
		{"net/rpc", "1|1|unix|" + testDir + "/plugin7|netrpc\n", nil, `speaks "netrpc" instead of grpc`},
		{"tcp", "1|1|tcp|127.0.0.1:80|grpc\n", nil, "outside"},
		{"tcp with the folder's path", "1|1|tcp|" + testDir + "/plugin7|grpc\n", nil, "outside"},
		{"elsewhere", "1|1|unix|/run/docker.sock|grpc\n", nil, "outside"},
		{"relative", "1|1|unix|plugin7|grpc\n", nil, "outside"},
		{"empty", "1|1|unix||grpc\n", nil, "outside"},
		{"abstract", "1|1|unix|@x|grpc\n", nil, "outside"},
		{"the folder", "1|1|unix|" + testDir + "|grpc\n", nil, "outside"},
		{"the folder with a slash", "1|1|unix|" + testDir + "/|grpc\n", nil, "outside"},
		{"the folder with a dot", "1|1|unix|" + testDir + "/.|grpc\n", nil, "outside"},
		{"above", "1|1|unix|" + testDir + "/..|grpc\n", nil, "outside"},
		{"beside", "1|1|unix|" + testDir + "/../x|grpc\n", nil, "outside"},
		{"below", "1|1|unix|" + testDir + "/a/b|grpc\n", nil, "outside"},
		{"detour", "1|1|unix|" + testDir + "/a/../b|grpc\n", nil, "outside"},
		{"two slashes", "1|1|unix|" + testDir + "//plugin7|grpc\n", nil, "outside"},
		{"a longer folder", "1|1|unix|" + testDir + "0/plugin7|grpc\n", nil, "outside"},
	} {
		got, err := checkHandshake(test.line, test.err, testDir)
		if test.reason == "" {
			if got != "plugin7" || err != nil {
				t.Errorf("%s: %q, %v", test.name, got, err)
			}
			continue
		}
		refused, ok := errors.AsType[*HandshakeError](err)
		if got != "" || !ok || !strings.Contains(refused.Reason, test.reason) {
			t.Errorf("%s: %q, %v; want a refusal with %q", test.name, got, err, test.reason)
		} else if refused.Output != strings.TrimSpace(test.line) {
			t.Errorf("%s: output %q", test.name, refused.Output)
		}
	}
}

// FuzzCheckHandshake reads its line as read does.
func FuzzCheckHandshake(f *testing.F) {
	for _, address := range []string{testDir + "/plugin7", testDir, testDir + "/..", testDir + "/a/../../x", "/etc/passwd", "\x00", "./x"} {
		f.Add([]byte("1|1|unix|" + address + "|grpc|TUlJ\r\nmore\n"))
	}
	f.Add([]byte("1|1|tcp|127.0.0.1:80|grpc\n"))
	f.Fuzz(func(t *testing.T, stdout []byte) {
		line, err := bufio.NewReaderSize(bytes.NewReader(stdout), maxHandshakeBytes).ReadSlice('\n')
		got, verdict := checkHandshake(string(line), err, testDir)
		if verdict != nil {
			refused, ok := errors.AsType[*HandshakeError](verdict)
			if !ok || got != "" || refused.Reason == "" || !utf8.ValidString(refused.Output) || utf8.RuneCountInString(refused.Output) > 201 {
				t.Fatalf("%q: %q beside %v", line, got, verdict)
			}
			return
		}
		fields := strings.Split(strings.TrimRight(string(line), "\r\n"), "|")
		if len(fields) < 5 || fields[0] != "1" || fields[1] != "1" || fields[2] != "unix" || fields[4] != "grpc" {
			t.Fatalf("accepted %q", line)
		}
		if got == "" || got == "." || got == ".." || strings.Contains(got, "/") || fields[3] != testDir+"/"+got {
			t.Fatalf("accepted the address %q as %q", fields[3], got)
		}
	})
}

func readHandshake(t *testing.T, written string) (socket, copied string, err error) {
	t.Helper()
	var rest bytes.Buffer
	o := read(strings.NewReader(written), testDir, &rest)
	<-o.copied
	socket, err = o.handshake(t.Context())
	return socket, rest.String(), err
}

func TestStdoutIsTheHandshakeAndTheRest(t *testing.T) {
	rest := strings.Repeat("output\n", 10_000)
	socket, copied, err := readHandshake(t, "1|1|unix|"+testDir+"/plugin7|grpc|TUlJ\n"+rest)
	if socket != "plugin7" || err != nil {
		t.Errorf("socket %q, error %v", socket, err)
	}
	if copied != rest {
		t.Errorf("%d bytes copied, want %d", len(copied), len(rest))
	}
}

func TestARefusedChildsOutputIsKeptWhole(t *testing.T) {
	for _, written := range []string{"", "usage: x\nmore", "no newline", strings.Repeat("x", 3*maxHandshakeBytes) + "\nend"} {
		socket, copied, err := readHandshake(t, written)
		if _, ok := errors.AsType[*HandshakeError](err); socket != "" || !ok {
			t.Errorf("socket %q, error %v", socket, err)
		}
		if copied != written {
			t.Errorf("copied %d bytes of %d", len(copied), len(written))
		}
	}
}

func TestHandshakeErrorShowsTheBeginningOfTheOutput(t *testing.T) {
	_, err := checkHandshake(strings.Repeat("é", 300)+"\xff\n", nil, testDir)
	if want := `handshake; it wrote "` + strings.Repeat("é", 200) + `…"`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v", err)
	}
	if got := (&HandshakeError{Reason: "silent"}).Error(); got != "silent" {
		t.Errorf("error %q", got)
	}
}

// A child whose output neither says anything nor ends keeps nobody waiting.
func TestASilentChildIsKilledAtTheEnd(t *testing.T) {
	silent, mouth := io.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	ours, killed := errors.New("we gave up"), make(chan struct{})
	conn, err := Connect(ctx, Options{RuntimeDir: t.TempDir(), Stdout: io.Discard, Start: func([]string, string) (*Child, error) {
		cancel(ours)
		return &Child{Stdout: silent, Kill: sync.OnceFunc(func() { close(killed) })}, nil
	}})
	if conn != nil || !errors.Is(err, ours) {
		t.Errorf("%v, %v", conn, err)
	}
	<-killed
	if err := mouth.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFailedStartLeavesNoFolder(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("cannot start")
	_, err := Connect(t.Context(), Options{RuntimeDir: dir, Start: func(_ []string, folder string) (*Child, error) {
		if filepath.Dir(folder) != dir {
			t.Errorf("the folder is %q", folder)
		}
		return nil, broken
	}})
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); !errors.Is(err, broken) || len(left) > 0 {
		t.Errorf("%v; %v is left", err, left)
	}
}

// Authors go by what the protocol's page says of waiting.
func TestPatienceInDocs(t *testing.T) {
	if os.Getenv("TOOLHOST_VM") != "" {
		t.Skip("the guest has no source tree: this test is the host's")
	}
	raw, err := os.ReadFile("../../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	if says := fmt.Sprintf("Within %g s of that the first frame", connectTimeout.Seconds()); !strings.Contains(string(raw), says) {
		t.Errorf("docs/protocol.md does not say %q", says)
	}
}
