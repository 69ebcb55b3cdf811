package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/text"
)

// Codes of errors.
const (
	codeInvalid      = "invalid_request"
	codeBadJSON      = "bad_json"
	codeUnauthorized = "unauthorized"
	codeForbidden    = "forbidden"
	codeThrottled    = "too_many_attempts"
	codeQuota        = "quota_exceeded"
	codeBadHost      = "bad_host"
	codeBadOrigin    = "bad_origin"
	codeNotFound     = "not_found"
	codeNoHistory    = "no_history"
	codeMethod       = "method_not_allowed"
	codeTimeout      = "request_timeout"
	codeConflict     = "conflict"
	codeTooLarge     = "too_large"
	codeMediaType    = "unsupported_media_type"
	codeBusy         = "busy"
	codeUnready      = "unready"
	codeInternal     = "internal"
)

var statuses = map[string]int{
	codeInvalid: http.StatusBadRequest, codeBadJSON: http.StatusBadRequest, codeUnauthorized: http.StatusUnauthorized,
	codeForbidden: http.StatusForbidden, codeBadHost: http.StatusForbidden, codeBadOrigin: http.StatusForbidden,
	codeThrottled: http.StatusTooManyRequests, codeQuota: http.StatusTooManyRequests,
	codeNotFound: http.StatusNotFound, codeNoHistory: http.StatusNotFound, codeMethod: http.StatusMethodNotAllowed,
	codeTimeout: http.StatusRequestTimeout, codeConflict: http.StatusConflict, codeTooLarge: http.StatusRequestEntityTooLarge,
	codeMediaType: http.StatusUnsupportedMediaType, codeBusy: http.StatusServiceUnavailable,
	codeUnready: http.StatusServiceUnavailable, codeInternal: http.StatusInternalServerError,
}

// retryAfter is when to ask again where nothing better is known: a daemon that is
// started anew is back by then.
const retryAfter = 2 * time.Second

// challenge is of RFC 6750, 3.
const challenge = `Bearer realm="toolhost"`

// refuse makes the error that a client is told.
func refuse(code, message, remedy string) error {
	return &api.Error{Status: statuses[code], Code: code, Message: message, Remedy: remedy}
}

// refuseFor is refuse with the time after which to ask again.
func refuseFor(wait time.Duration, code, message, remedy string) error {
	return &api.Error{Status: statuses[code], Code: code, Message: message, Remedy: remedy, RetryAfterMs: wait.Milliseconds()}
}

// fail answers with an error. Anything but a refusal is a bug, or the daemon's
// own trouble.
func fail(w http.ResponseWriter, err error) {
	refused := failureOf(err)
	if refused.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if wait := waitOf(refused); wait > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	respond(w, refused.Status, api.Failure{Error: *refused})
}

// failureOf is an error as clients are told.
func failureOf(err error) *api.Error {
	if refused, ok := errors.AsType[*api.Error](err); ok {
		return refused
	}
	return &api.Error{
		Status: http.StatusInternalServerError, Code: codeInternal, Message: printable(err.Error()), Remedy: "see the daemon's log",
	}
}

func waitOf(e *api.Error) time.Duration {
	if e.RetryAfterMs == 0 && (e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests) {
		return retryAfter
	}
	return milliseconds(e.RetryAfterMs)
}

// respond writes JSON.
func respond(w http.ResponseWriter, status int, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"bug: the answer is not JSON","remedy":"report it"}}`)
	}
	respondRaw(w, status, raw)
}

func respondRaw(w http.ResponseWriter, status int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)+1))
	w.WriteHeader(status)
	_, _ = w.Write(raw)
	_, _ = w.Write([]byte{'\n'}) // appended, all of it would be copied
}

// maxShownRunes bounds what an error repeats of a request, and maxRuleRunes what
// it says of a body that breaks its schema: place, rule and value.
const (
	maxShownRunes = 200
	maxRuleRunes  = 600
)

// printable is one line of a client's own words that can be shown anywhere.
func printable(s string) string { return printableUpTo(s, maxShownRunes) }

func printableUpTo(s string, maxRunes int) string {
	quoted := strconv.QuoteToGraphic(strings.ToValidUTF8(s, "\uFFFD"))
	return text.Cut(asTheyWere.Replace(quoted[1:len(quoted)-1]), maxRunes+1)
}

// asTheyWere undoes the quoting of what can be shown as it is: an error may have quoted
// a value before, which would be escaped twice.
var asTheyWere = strings.NewReplacer(`\\`, `\`, `\"`, `"`)
