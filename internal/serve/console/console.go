// Package console is the daemon's web console: pages that are embedded, need no
// build and fetch nothing from elsewhere. They show what the HTTP API tells and
// do what it allows (package httpapi); nothing is decided here. The API also
// sees to it that only those get the pages who may use it.
//
// The pages are plain HTML, CSS and ES modules, below static: js/store.js makes
// the state out of a turn's events, js/feed.js keeps it true to the daemon,
// js/api.js speaks to the API, js/draw.js draws, and js/views has a module for
// each view. Data of tools and models is only ever set as text.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed static
var static embed.FS

const (
	indexName = "index.html"
	// assetsMark stands in the index for the folder of everything else.
	assetsMark = "{{assets}}"
	// policy lets nothing run, load or be posted to but what is served here. What
	// Trusted Types forbid is what the pages don't do: make markup out of text.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	// The index is asked for anew each time; the rest has the hash of all of it
	// in its path, and so never changes.
	askAnew, keepForever = "no-cache", "private, max-age=31536000, immutable"
)

// page is a file as it is served.
type page struct {
	body                     []byte
	kind, etag, cacheControl string
}

// Handler serves the console at /. It answers GET and HEAD, the same to
// everybody, and may be called by any goroutine.
func Handler() http.Handler { return handler() }

var handler = sync.OnceValue(func() http.Handler { return pages(load(static)) })

// pages are all files, by the path of their URL.
type pages map[string]page

// load reads the files. They are embedded, so that an error is a bug.
func load(files fs.FS) pages {
	bodies := map[string][]byte{}
	all := sha256.New()
	err := fs.WalkDir(files, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		name = strings.TrimPrefix(name, "static/")
		bodies[name] = body
		all.Write([]byte(name + "\x00" + hash(body)))
		return err
	})
	if err != nil {
		panic("bug: the console's files cannot be read: " + err.Error())
	}
	assets := "/assets/" + hex.EncodeToString(all.Sum(nil))[:16]
	index := bytes.ReplaceAll(bodies[indexName], []byte(assetsMark), []byte(assets))
	delete(bodies, indexName)
	p := pages{"/": newPage(indexName, index, askAnew)}
	for name, body := range bodies {
		p[assets+"/"+name] = newPage(name, body, keepForever)
	}
	return p
}

func newPage(name string, body []byte, cacheControl string) page {
	return page{body: body, kind: mediaType(name), etag: `"` + hash(body)[:32] + `"`, cacheControl: cacheControl}
}

func hash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// mediaType asks no list of the machine, which may say anything.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}

// ServeHTTP implements http.Handler.
func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the console's pages are only read: use GET", http.StatusMethodNotAllowed)
		return
	}
	found, ok := p[r.URL.Path]
	if !ok {
		http.Error(w, "there is no such page: the console is at /", http.StatusNotFound)
		return
	}
	h.Set("Cache-Control", found.cacheControl)
	h.Set("Content-Type", found.kind)
	h.Set("ETag", found.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.body))
}
