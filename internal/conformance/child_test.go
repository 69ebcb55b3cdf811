package conformance

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A process may be waited for before the last of its stderr has been read.
func TestLastWordsAreWaitedFor(t *testing.T) {
	for late, want := range map[time.Duration]string{
		time.Second / 2: "exit status 0; on stderr: panic: x",
		2 * time.Second: "exit status 0", // somebody else holds the pipe open
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &child{stderr: &kept{}, gone: make(chan struct{}), silent: make(chan struct{}), state: new(os.ProcessState)}
			close(c.gone)
			go func() {
				time.Sleep(late)
				_, _ = c.stderr.Write([]byte("panic: x\n"))
				close(c.silent)
			}()
			if got := c.ended(); got != want {
				t.Errorf("after %s: %q, want %q", late, got, want)
			}
			<-c.silent
		})
	}
}
