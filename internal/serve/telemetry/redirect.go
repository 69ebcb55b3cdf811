package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/toolhost/toolhost/internal/text"
)

// maxLocationBytes bounds what a collector can write of an address into the log.
const maxLocationBytes = 100

// redirected is a collector's answer that names another address. It is not followed:
// secret headers are for the address that was given with them.
type redirected struct {
	status   int
	from, to string
}

// Error implements error.
func (e *redirected) Error() string {
	return fmt.Sprintf("%s answered with status %d, and nothing was sent on to %q: name the final address as the endpoint", e.from, e.status, text.Begin(e.to, maxLocationBytes))
}

// proxy chooses as the exporters' own clients do, and refuses what a redirect has made.
// A client of ours would refuse it as well, but without the certificates and the timeout
// that the exporters read from the environment.
func proxy(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, &redirected{status: r.Response.StatusCode, from: r.Response.Request.URL.Redacted(), to: r.URL.Redacted()}
	}
	return http.ProxyFromEnvironment(r)
}

// plain is a redirect without what the HTTP client and the exporter say around it, and any
// other error as it is.
func plain(err error) error {
	if r, ok := errors.AsType[*redirected](err); ok {
		return r
	}
	return err
}
