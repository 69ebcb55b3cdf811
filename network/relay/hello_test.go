package relay

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// helloFor is what Go's client begins with.
func helloFor(t testing.TB, name string, protos ...string) []byte {
	t.Helper()
	kept := &keeper{}
	_ = tls.Client(kept, &tls.Config{ServerName: name, NextProtos: protos, InsecureSkipVerify: name == ""}).Handshake()
	if kept.Len() == 0 {
		t.Fatal("the client has said nothing")
	}
	return kept.Bytes()
}

// keeper keeps what is written, and has nothing to read.
type keeper struct {
	net.Conn
	bytes.Buffer
}

func (k *keeper) Write(p []byte) (int, error)      { return k.Buffer.Write(p) }
func (k *keeper) Read([]byte) (int, error)         { return 0, io.EOF }
func (k *keeper) Close() error                     { return nil }
func (k *keeper) SetDeadline(time.Time) error      { return nil }
func (k *keeper) SetReadDeadline(time.Time) error  { return nil }
func (k *keeper) SetWriteDeadline(time.Time) error { return nil }

// records cuts a record into such of size bytes each (RFC 8446, section 5.1).
func records(raw []byte, size int) (cut []byte) {
	for body := raw[5:]; len(body) > 0; {
		n := min(size, len(body))
		cut = append(append(cut, raw[0], raw[1], raw[2], byte(n>>8), byte(n)), body[:n]...)
		body = body[n:]
	}
	return cut
}

// split gives at most size bytes at each read, then ends.
type split struct {
	keeper
	left []byte
	size int
}

func (s *split) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.size)], s.left)
	s.left = s.left[n:]
	return n, nil
}

func TestAHelloOverAnySplit(t *testing.T) {
	raw := helloFor(t, "A.test", "h2", "http/1.1")
	for _, cut := range [][]byte{raw, records(raw, 1), records(raw, 7), records(raw, len(raw)/2)} {
		for _, size := range []int{1, 2, 3, 5, 6, 61, 517, len(cut) - 1, len(cut)} {
			conn := &split{left: cut, size: size}
			name, read, err := readHello(conn, time.Now().Add(time.Minute))
			if err != nil || name != "a.test" || !bytes.Equal(read, cut) || conn.Len() != 0 {
				t.Fatalf("parts of %d of %d bytes: %q, %d read, %d said, %v", size, len(cut), name, len(read), conn.Len(), err)
			}
		}
	}
}

func TestWhatIsNoHello(t *testing.T) {
	raw := helloFor(t, "a.test")
	for what, said := range map[string][]byte{
		"nothing": nil, "HTTP": []byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"), "half": raw[:len(raw)/2],
		"an alert": {21, 3, 1, 0, 2, 1, 0}, "SSLv2": {0x80, 0x2e, 1, 0, 2},
		"too much": records(append([]byte{22, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xff}, make([]byte, 70<<10)...), 16<<10),
	} {
		name, _, err := readHello(&split{left: said, size: 1000}, time.Now().Add(time.Minute))
		if err == nil {
			t.Errorf("%s: name %q", what, name)
		}
	}
	if name, _, err := readHello(&split{left: helloFor(t, ""), size: 1000}, time.Now().Add(time.Minute)); name != "" || err != nil {
		t.Errorf("without a name: %q, %v", name, err)
	}
}

// A name that Unicode alone makes the granted one is another.
func TestANameInUnicode(t *testing.T) {
	name, _, err := readHello(&split{left: helloFor(t, "\u212a.Test"), size: 1000}, time.Now().Add(time.Minute))
	if err != nil || name != "\u212a.test" {
		t.Errorf("%q, %v", name, err)
	}
}

// What a client with a key for it hides in its hello is not seen, and not trusted:
// the name outside counts (RFC 9849).
func TestAnEncryptedHello(t *testing.T) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := []byte("front.test")
	config := append([]byte{1, 0, 0x20, 0, 32}, key.PublicKey().Bytes()...) // its number, and DHKEM(X25519)
	config = append(config, 0, 4, 0, 1, 0, 1, 0, byte(len(public)))         // HKDF-SHA256, AES-128-GCM
	config = append(append(config, public...), 0, 0)
	config = append([]byte{0xfe, 0x0d, 0, byte(len(config))}, config...)
	kept := &keeper{}
	_ = tls.Client(kept, &tls.Config{
		ServerName: "secret.test", MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: append([]byte{0, byte(len(config))}, config...),
	}).Handshake()
	name, _, err := readHello(&split{left: kept.Bytes(), size: 1000}, time.Now().Add(time.Minute))
	if err != nil || name != string(public) || bytes.Contains(kept.Bytes(), []byte("secret")) {
		t.Errorf("%q, %v", name, err)
	}
}

// One that speaks slowly is over at the same time as one that is silent.
func TestASlowHello(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ours, tools := net.Pipe()
			var speaking sync.WaitGroup
			speaking.Go(func() {
				for _, b := range helloFor(t, "a.test") {
					time.Sleep(pause)
					if pause == 0 {
						return
					}
					if _, err := tools.Write([]byte{b}); err != nil {
						return
					}
				}
			})
			began := time.Now()
			_, _, err := readHello(ours, began.Add(inspectTime))
			if took := time.Since(began); !errors.Is(err, errSilent) || took != inspectTime {
				t.Errorf("after %v: %v", took, err)
			}
			_, _ = ours.Close(), tools.Close()
			speaking.Wait()
		})
	}
}

func FuzzHello(f *testing.F) {
	raw := helloFor(f, "a.test", "h2")
	for _, seed := range [][]byte{raw, records(raw, 9), raw[:20], {22, 3, 1, 0, 0}, bytes.Repeat([]byte{22, 3, 1, 0, 0}, 30)} {
		f.Add(seed, byte(3))
	}
	f.Fuzz(func(t *testing.T, said []byte, size byte) {
		whole, read, err := readHello(&split{left: said, size: 1 << 20}, time.Now().Add(time.Minute))
		conn := &split{left: said, size: 1 + int(size)}
		parts, readParts, errParts := readHello(conn, time.Now().Add(time.Minute))
		if whole != parts || (err == nil) != (errParts == nil) {
			t.Errorf("whole %q, %v; in parts %q, %v", whole, err, parts, errParts)
		}
		if !bytes.HasPrefix(said, read) || !bytes.HasPrefix(said, readParts) || len(read) > maxHelloBytes+1024 || conn.Len() != 0 {
			t.Errorf("read %d and %d bytes of %d, said %d", len(read), len(readParts), len(said), conn.Len())
		}
		if err == nil && !strings.Contains(lower(string(unframed(read))), whole) {
			t.Errorf("name %q was not said", whole)
		}
	})
}

// unframed is what records hold.
func unframed(raw []byte) (body []byte) {
	for len(raw) >= 5 {
		n := min(len(raw), 5+int(raw[3])<<8+int(raw[4]))
		body = append(body, raw[5:n]...)
		raw = raw[n:]
	}
	return body
}
