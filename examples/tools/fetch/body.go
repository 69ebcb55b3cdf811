package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/toolhost/toolhost/plugin"
)

const (
	chunkBytes       = 32 << 10
	sniffBytes       = 1024
	progressInterval = time.Second
)

// body is what a server sends, and what it is.
type body struct {
	bounded   *bounded
	reader    *bufio.Reader
	mediaType string
	charset   string // of text; empty for a blob
	encoding  encoding.Encoding
	err       error
}

// newBody looks at the first bytes that come: servers leave the type out, or
// call a picture text.
func newBody(from *bounded, contentType string) *body {
	b := &body{bounded: from, reader: bufio.NewReaderSize(from, chunkBytes)}
	_, b.err = b.reader.Peek(1)
	head, _ := b.reader.Peek(min(b.reader.Buffered(), sniffBytes))
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil && mediaType == "" {
		mediaType, params, _ = mime.ParseMediaType(http.DetectContentType(head))
	}
	b.mediaType = mediaType
	if textual(mediaType) {
		b.decide(head, params["charset"])
	}
	return b
}

// textual says whether a media type is text, see RFC 6838 for the suffixes.
func textual(mediaType string) bool {
	kind, subtype, _ := strings.Cut(mediaType, "/")
	if kind == "text" || strings.HasSuffix(subtype, "+json") || strings.HasSuffix(subtype, "+xml") || strings.HasSuffix(subtype, "+yaml") {
		return true
	}
	switch subtype {
	case "json", "xml", "javascript", "x-javascript", "ecmascript", "x-ndjson", "ndjson", "json-seq", "yaml", "x-yaml", "toml", "sql", "graphql", "x-sh", "x-www-form-urlencoded":
		return kind == "application"
	}
	return false
}

// decide finds the character set: a byte order mark, what the server says, what
// HTML says, else UTF-8.
func (b *body) decide(head []byte, declared string) {
	b.encoding, b.charset = charset.Lookup(declared)
	// Where a page says nothing, the library takes what browsers took in 1995.
	if b.encoding == nil && b.mediaType == "text/html" && bytes.Contains(bytes.ToLower(head), []byte("charset")) {
		b.encoding, b.charset, _ = charset.DetermineEncoding(head, "")
	}
	for _, mark := range marks {
		if bytes.HasPrefix(head, []byte(mark.bytes)) {
			b.encoding, b.charset = mark.encoding, mark.name
		}
	}
	if b.encoding == nil || b.charset == "utf-8" {
		b.encoding, b.charset = unicode.UTF8, "utf-8"
	}
	if bytes.IndexByte(head, 0) >= 0 && !strings.HasPrefix(b.charset, "utf-16") {
		b.encoding, b.charset, b.mediaType = nil, "", "application/octet-stream" // no text has NUL
	}
}

var marks = []struct {
	bytes, name string
	encoding    encoding.Encoding
}{
	{"\xef\xbb\xbf", "utf-8", unicode.UTF8},
	{"\xfe\xff", "utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	{"\xff\xfe", "utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
}

// show streams text, or sends the blob.
func (b *body) show(out *plugin.Output, length int64) error {
	if b.err != nil {
		return ended(b.err)
	}
	if b.encoding == nil {
		return b.blob(out)
	}
	return b.text(out, &progress{out: out, length: length, last: time.Now()})
}

// text shows each piece as it comes, but for a character that has only begun;
// transform.Reader would keep the piece.
func (b *body) text(out *plugin.Output, p *progress) error {
	decoder := unicode.BOMOverride(b.encoding.NewDecoder())
	from, to := make([]byte, chunkBytes), make([]byte, 3*chunkBytes)
	held := 0
	for {
		n, err := b.reader.Read(from[held:])
		rest := from[:held+n]
		for {
			written, taken, short := decoder.Transform(to, rest, err != nil)
			if written > 0 {
				if err := out.Text(string(to[:written])); err != nil {
					return err
				}
			}
			rest = rest[taken:]
			if short == nil || errors.Is(short, transform.ErrShortSrc) {
				break
			}
			if !errors.Is(short, transform.ErrShortDst) {
				return short
			}
		}
		held = copy(from, rest)
		if err != nil {
			return ended(err)
		}
		p.report(b.bounded.read)
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// blob sends all or nothing: a part of a picture is useless.
func (b *body) blob(out *plugin.Output) error {
	if b.bounded.left+b.bounded.read > maxBlobBytes {
		b.bounded.left = maxBlobBytes - b.bounded.read
	}
	data, err := io.ReadAll(b.reader)
	switch {
	case err != nil:
		return err
	case b.bounded.truncated:
		return fmt.Errorf("it is %s of more than %d bytes, which is not shown in part: raise max_bytes (up to %d for what is not text)", b.mediaType, len(data), maxBlobBytes)
	}
	return out.Blob(b.mediaType, data)
}

// progress tells people how far a long text is.
type progress struct {
	out    *plugin.Output
	length int64 // -1 if the server does not say
	last   time.Time
}

func (p *progress) report(read int64) {
	if time.Since(p.last) < progressInterval {
		return
	}
	p.last = time.Now()
	fraction := -1.0
	if p.length > 0 {
		fraction = float64(read) / float64(p.length)
	}
	_ = p.out.Progress(fraction, fmt.Sprintf("%d KiB", read>>10))
}
