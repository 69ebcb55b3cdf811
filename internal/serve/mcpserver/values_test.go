package mcpserver

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/stage"
)

// What has millions of values is not decoded, be it a message or a batch, and
// whatever else is wrong with it.
func TestManyValuesAreNotDecoded(t *testing.T) {
	stage.Whole(t)
	const elements = 4_000_000
	for name, body := range map[string]string{
		"a message":          `{"jsonrpc":"2.0","id":1,"method":"ping","params":[0` + strings.Repeat(",0", elements) + `]}`,
		"a batch":            `[0` + strings.Repeat(",0", elements) + `]`,
		"a batch with twins": `[{"a":1,"a":1}` + strings.Repeat(",0", elements-10) + `]`,
	} {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, ok := readBody(w, r)
		runtime.ReadMemStats(&after)
		if ok || w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %.100s", name, w.Code, w.Body)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: %d MiB were allocated", name, took>>20)
		}
	}
}
