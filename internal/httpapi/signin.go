package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // of the page
	"encoding/base64"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/api"
)

// signInPage tells a person with a browser how to get a session.
//
//go:embed signin.html
var signInPage []byte

// signInPolicy lets nothing in but the page's own style.
var signInPolicy = "default-src 'none'; style-src '" + hashOf(between(signInPage, "<style>", "</style>")) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func between(page []byte, from, to string) []byte {
	_, rest, _ := bytes.Cut(page, []byte(from))
	inner, _, _ := bytes.Cut(rest, []byte(to))
	return inner
}

// hashOf is a source of a Content-Security-Policy (CSP 3, 2.3.1).
func hashOf(source []byte) string {
	sum := sha256.Sum256(source)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// failPerson answers a client that is not let in: a browser that shows the
// answer to a person gets a page, any other client the error.
func failPerson(w http.ResponseWriter, r *http.Request, err error) {
	refused, ok := errors.AsType[*api.Error](err)
	_, unix := peerOf(r.Context())
	looks := (r.Method == http.MethodGet || r.Method == http.MethodHead) && accepts(r, "text/html")
	if !ok || unix || !looks {
		fail(w, r, err)
		return
	}
	h := w.Header()
	if refused.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", challenge)
	}
	h.Set("Content-Security-Policy", signInPolicy)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(signInPage)))
	w.WriteHeader(refused.Status)
	_, _ = w.Write(signInPage)
}

// accepts: the request names a media type among those that it takes. That it
// takes anything is not enough.
func accepts(r *http.Request, kind string) bool {
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			named, parameters, err := mime.ParseMediaType(part)
			if q, err := strconv.ParseFloat(parameters["q"], 64); err == nil && q == 0 {
				continue // RFC 9110, 12.4.2
			}
			if err == nil && named == kind {
				return true
			}
		}
	}
	return false
}
