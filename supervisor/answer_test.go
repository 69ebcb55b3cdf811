package supervisor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/supervisor"
)

// A3: the answer to a call that has sent a lot comes when it is due, and with all
// of it, whatever the size of the pieces, and whatever is looked for in them.
func TestLargeOutputIsAnsweredInTime(t *testing.T) {
	if slow() {
		t.Skip("it sends 32 MiB, and twice that with make soak")
	}
	host := newHost(t, supervisor.Config{})
	for _, test := range []struct {
		name    string
		mib     int
		piece   string
		limit   int64
		secrets []supervisor.Secret
	}{
		{name: "16 KiB", mib: times(0, 32, 64), piece: strings.Repeat("x", 16<<10), limit: 256 << 20},
		{name: "16 KiB, half of them dropped", mib: times(0, 32, 64), piece: strings.Repeat("é", 8<<10), limit: 16 << 20},
		{name: "10 bytes", mib: 1, piece: strings.Repeat("x", 10), limit: 256 << 20},
		{name: "secrets", mib: times(0, 16, 32), piece: strings.Repeat("hunter2x", 2<<10), limit: 256 << 20, secrets: []supervisor.Secret{{Variable: "S", Value: "hunter22"}, {Variable: "T", Value: "2xhunter3"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			arguments, err := json.Marshal(args{N: test.mib, Text: test.piece})
			if err != nil {
				t.Fatal(err)
			}
			r := request("pieces", string(arguments))
			r.Limits.OutputBytes, r.Secrets = test.limit, test.secrets
			events := make(chan api.Event, 1024)
			r.Events, r.EventOutputBytes = events, 1
			running := host.Start(t.Context(), r)
			waitForMessage(t, running, events, "all sent")
			running.Abort(api.ReasonUser)
			aborted := time.Now()
			result := running.Result()
			if took := time.Since(aborted); took > 10*time.Second { // of a second and a half on a machine of its own
				t.Errorf("the answer took %s", took)
			}
			wantStatus(t, result, api.StatusCancelled)
			sent := int64(test.mib << 20 / len(test.piece) * len(test.piece))
			if got := result.Output.Content; got.SeenBytes < sent*9/10 || got.SeenBytes-got.KeptBytes != got.DroppedBytes || got.KeptBytes != min(sent, test.limit) && test.secrets == nil {
				t.Errorf("%d bytes sent: %+v", sent, got)
			}
		})
	}
}

// waitForMessage waits until a tool has said something of its progress.
func waitForMessage(t *testing.T, running testCall, events <-chan api.Event, message string) {
	t.Helper()
	for {
		select {
		case e := <-events:
			if e.Message == message {
				return
			}
		case <-running.Done():
			t.Fatalf("the call has ended: %s", running.Result().Message)
		case <-time.After(hangLimit):
			t.Fatal("nothing is heard of the tool")
		}
	}
}
