package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// headers sends blocks to the command adapter's decoder as those of one
// connection; ok is false at the first that it takes for malformed.
func (d *decoder) headers(t testing.TB, blocks [][]byte) (paths []string, ok bool) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	message := binary.LittleEndian.AppendUint32(nil, math.MaxUint32)
	for _, block := range blocks {
		message = binary.LittleEndian.AppendUint32(message, uint32(len(block)))
		if _, err := d.in.Write(append(message, block...)); err != nil {
			t.Fatalf("the decoder has ended at %q: %v", block, err)
		}
		message = nil
		n, err := d.out.ReadByte()
		if err != nil {
			t.Fatalf("the decoder has ended at %q: %v", block, err)
		}
		if n == math.MaxUint8 {
			return paths, false
		}
		path := make([]byte, n)
		if _, err := io.ReadFull(d.out, path); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, string(path))
	}
	return paths, true
}

// wanted is what the standard decoder makes of the blocks.
func wanted(blocks [][]byte) (paths []string, ok bool) {
	const longest = 63
	d := hpack.NewDecoder(4096, nil)
	for _, block := range blocks {
		fields, err := d.DecodeFull(block)
		if err != nil {
			return paths, false
		}
		path := ""
		for _, f := range fields {
			if f.Name == ":path" {
				path = f.Value
			}
			if len(f.Value) > math.MaxUint16/2 || len(f.Name) > math.MaxUint16/2 {
				return paths, false
			}
		}
		if len(path) > longest || strings.Contains(path, "\x00") {
			path = ""
		}
		paths = append(paths, path)
	}
	return paths, true
}

// TestTheAdaptersHeaders: whatever grpc-go's encoder makes of a call's headers,
// over a whole connection, is understood.
func TestTheAdaptersHeaders(t *testing.T) {
	d := launchersDecoder(t, "headers.c", "../hpack.c")
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	var blocks [][]byte
	for i := range 600 {
		b.Reset()
		if i%97 == 0 {
			e.SetMaxDynamicTableSize(uint32(4096 - i))
		}
		path := []string{"/toolhost.plugin.v1.Tool/Call", "/grpc.health.v1.Health/Check", "/", "/toolhost.plugin.v1.Tool/Cancel"}[i%4]
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: "POST"},
			{Name: ":scheme", Value: "http"},
			{Name: ":path", Value: path},
			{Name: ":authority", Value: "unused"},
			{Name: "content-type", Value: "application/grpc"},
			{Name: "grpc-timeout", Value: strings.Repeat("9", i%50) + "u"},
			{Name: "x-" + strings.Repeat("n", i%130), Value: strings.Repeat("\xffä~", i)},
			{Name: "authorization", Value: "x", Sensitive: i%2 == 0},
		} {
			if err := e.WriteField(f); err != nil {
				t.Fatal(err)
			}
		}
		blocks = append(blocks, bytes.Clone(b.Bytes()))
	}
	got, ok := d.headers(t, blocks)
	want, _ := wanted(blocks)
	if !ok || !slices.Equal(got, want) {
		t.Errorf("%v, %d paths, the last %q, want %d", ok, len(got), got[max(0, len(got)-4):], len(want))
	}
}

func FuzzTheAdaptersHeaders(f *testing.F) {
	d := launchersDecoder(f, "headers.c", "../hpack.c")
	f.Add([]byte("\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"), []byte("\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf")) // RFC 7541, C.4
	f.Add([]byte("\x44\x85\x62\x72\xd1\x41\xff"), []byte("\x20\x3f\xe1\x1f\xbe"))
	f.Add([]byte("\x00\x05:path\x03abc"), []byte("\x04\x7f\x00"))
	f.Add([]byte{}, []byte("\x04\x04/a/\x00"))                     // no prefix of a path is a path
	f.Add([]byte("\x44\x7f\x80\x80\x80\x00"), []byte("\x04\x01/")) // a long form of an integer
	f.Add([]byte("\x0f\x80\x80\x80\x80\x00\x01a"), []byte("\xbe"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		blocks := [][]byte{first, second}
		want, wantOK := wanted(blocks)
		got, ok := d.headers(t, blocks)
		if wantOK && (!ok || !slices.Equal(got, want)) {
			t.Errorf("%x: %v, paths %q, want %q", blocks, ok, got, want)
		}
	})
}
