package host

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
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
			if got != good || err != nil {
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

// FuzzCheckHandshake reads its line as childRunner.handshake does.
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
		rest, ended := strings.CutSuffix(got, "\n")
		fields := strings.Split(rest, "|")
		if !ended || strings.Contains(rest, "\n") || len(fields) != 5 || !bytes.HasPrefix(line, []byte(rest)) {
			t.Fatalf("%q became %q", line, got)
		}
		if fields[0] != "1" || fields[1] != "1" || fields[2] != "unix" || fields[4] != "grpc" {
			t.Fatalf("accepted %q", got)
		}
		name, inside := strings.CutPrefix(fields[3], testDir+"/")
		if !inside || name == "" || name == "." || name == ".." || strings.Contains(name, "/") || filepath.Dir(fields[3]) != testDir {
			t.Fatalf("accepted the address %q", fields[3])
		}
	})
}

func readHandshake(t *testing.T, written string) (r *childRunner, line, copied string) {
	t.Helper()
	var rest bytes.Buffer
	r = &childRunner{
		options: Options{Stdout: &rest}, toolDir: testDir, copied: make(chan struct{}),
		child: &Child{Stdout: strings.NewReader(written)},
	}
	stdout := r.Stdout()
	got, err := io.ReadAll(stdout)
	if err := errors.Join(err, stdout.Close()); err != nil {
		t.Fatal(err)
	}
	<-r.copied
	return r, string(got), rest.String()
}

func TestGoPluginSeesOneLineAndStdoutTheRest(t *testing.T) {
	line := "1|1|unix|" + testDir + "/plugin7|grpc"
	rest := strings.Repeat("output\n", 10_000)
	r, got, copied := readHandshake(t, line+"|TUlJ\n"+rest)
	if got != line+"\n" || r.socket != "plugin7" || r.handshakeErr != nil {
		t.Errorf("line %q, socket %q, error %v", got, r.socket, r.handshakeErr)
	}
	if copied != rest {
		t.Errorf("%d bytes copied, want %d", len(copied), len(rest))
	}
}

func TestARefusedChildsOutputIsKeptWhole(t *testing.T) {
	for _, written := range []string{"", "usage: x\nmore", "no newline", strings.Repeat("x", 3*maxHandshakeBytes) + "\nend"} {
		r, got, copied := readHandshake(t, written)
		if _, ok := errors.AsType[*HandshakeError](r.handshakeErr); got != "" || r.socket != "" || !ok {
			t.Errorf("line %q, socket %q, error %v", got, r.socket, r.handshakeErr)
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

func TestAChildStartedAfterTheEndIsKilled(t *testing.T) {
	for _, ended := range []bool{false, true} {
		kills := 0
		child := &Child{ID: "c", Kill: func() { kills++ }}
		r := &childRunner{options: Options{Start: func([]string, string) (*Child, error) { return child, nil }}}
		if ended {
			r.kill() // there is nothing to kill yet
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if (kills == 1) != ended {
			t.Errorf("ended %v: %d kills", ended, kills)
		}
	}
}
