package format

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	pngs "image/png"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/api"
)

// pictures are one of each type that can be written here, of a size.
func pictures(t *testing.T, width, height int) map[string][]byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	var p, g, j bytes.Buffer
	for _, err := range []error{pngs.Encode(&p, img), gif.Encode(&g, img, nil), jpeg.Encode(&j, img, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	exif := append([]byte("\xff\xd8\xff\xe1\x00\x0aExif\x00\x00II\xff"), j.Bytes()[2:]...)
	return map[string][]byte{"png": p.Bytes(), "gif": g.Bytes(), "jpeg": j.Bytes(), "jpeg with Exif": exif}
}

func TestImageSize(t *testing.T) {
	for name, data := range pictures(t, 300, 7) {
		if w, h := imageSize(data); w != 300 || h != 7 {
			t.Errorf("%s: %d x %d", name, w, h)
		}
		for n := range len(data) {
			if w, h := imageSize(data[:n]); (w != 0 || h != 0) && (w != 300 || h != 7) {
				t.Errorf("%s of %d bytes: %d x %d", name, n, w, h)
			}
		}
	}
	for chunk, want := range map[string]string{
		"VP8X\x0a\x00\x00\x00\x10\x00\x00\x00\x2b\x01\x00\x06\x00\x00": "300 7",
		"VP8L\x0a\x00\x00\x00\x2f\x2b\x81\x01\x00\x00\x00\x00\x00\x00": "300 7",
		"VP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x2c\x01\x07\x00": "300 7",
		"ALPH\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": "0 0",
	} {
		if got := fmt.Sprint(imageSize([]byte("RIFF\x00\x00\x00\x00WEBP" + chunk))); got != want {
			t.Errorf("%q: %s", chunk, got)
		}
	}
}

// An image that Anthropic's API refuses would cost the whole conversation: it is told of.
func TestAnthropicTakesNoLargeImage(t *testing.T) {
	shown := func(data []byte) string {
		r := &api.Result{Status: api.StatusOK, Content: []api.Content{{Type: "blob", MIMEType: "image/png", Data: data}}}
		raw, err := anthropic{}.Results([]Call{{ID: "a", Tool: "shot"}}, []*api.Result{r})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for name, data := range pictures(t, 8000, 1) {
		if got := shown(data); !strings.Contains(got, `"type":"image"`) {
			t.Errorf("%s of 8000 pixels: %.200s", name, got)
		}
	}
	for name, data := range pictures(t, 1, 8001) {
		if got := shown(data); !strings.Contains(got, `[blob image/png, `) {
			t.Errorf("%s of 8001 pixels: %.200s", name, got)
		}
	}
	if got := shown([]byte("\x89PNG\r\n\x1a\n")); !strings.Contains(got, `[blob image/png, 8 bytes]`) {
		t.Errorf("a broken one: %s", got)
	}
}
