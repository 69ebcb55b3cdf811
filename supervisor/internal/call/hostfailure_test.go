package call

import (
	"errors"
	"testing"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor/internal/outcome"
	"github.com/toolhost/toolhost/supervisor/spec"
)

// What the host itself cannot do is its own failure, to be tried again, unless
// what it was asked for is at fault.
func TestAFailureOfTheHostIsItsOwn(t *testing.T) {
	for _, test := range []struct {
		err  error
		want api.Reason
	}{
		{errors.New("no handshake"), "start"},
		{outcome.HostFailure(errors.New("no cgroup can be made")), "host"},
		{outcome.HostFailure(outcome.Refuse(api.StatusStartFailed, api.ReasonNotExecutable, errors.New("x"))), "not_executable"},
	} {
		got := &api.Result{}
		bare(spec.Request{Name: "t"}).judge(got, outcome.Evidence{StartErr: test.err}, 0)
		if got.Status != api.StatusStartFailed || got.Reason != test.want || got.Retry.Retryable != (test.want != api.ReasonNotExecutable) {
			t.Errorf("%v: %s (%s), retry %+v, want reason %s", test.err, got.Status, got.Reason, got.Retry, test.want)
		}
	}
}
