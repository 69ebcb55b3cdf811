package link

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/internal/lazy"
)

const (
	// WorkerBeats and CallerBeats match the beats of all.
	WorkerBeats = "th1.hb.w.*"
	CallerBeats = "th1.hb.c.*"
)

// OfferSubject and ControlSubject are what a caller publishes to.
func OfferSubject(worker, caller string) string { return "th1.w." + worker + "." + caller + ".offer" }

func ControlSubject(worker, caller string) string { return "th1.w." + worker + "." + caller + ".ctl" }

// ForWorker matches all that is sent to a worker.
func ForWorker(worker string) string { return "th1.w." + worker + ".>" }

// FrameSubject is where a worker sends the frames of an attempt.
func FrameSubject(caller, worker, inbox string) string {
	return "th1.c." + caller + "." + worker + "." + inbox
}

// WorkerBeat and CallerBeat are one party's.
func WorkerBeat(worker string) string { return "th1.hb.w." + worker }
func CallerBeat(caller string) string { return "th1.hb.c." + caller }

// Token is one word of a subject, counted from 0; "" if it has fewer.
func Token(subject string, n int) string {
	for range n {
		_, rest, _ := strings.Cut(subject, ".")
		subject = rest
	}
	token, _, _ := strings.Cut(subject, ".")
	return token
}

// Rights are the subjects that a party may use.
type Rights struct{ Publish, Subscribe []string }

// WorkerRights are those of a worker, CallerRights those of a caller.
func WorkerRights(worker string) Rights {
	return Rights{
		Publish:   []string{WorkerBeat(worker), FrameSubject("*", worker, "*")},
		Subscribe: []string{ForWorker(worker), CallerBeats},
	}
}

// CallerRights are those of the caller with a public key.
func CallerRights(caller string) Rights {
	return Rights{
		Publish:   []string{OfferSubject("*", caller), ControlSubject("*", caller), CallerBeat(caller)},
		Subscribe: []string{FrameSubject(caller, "*", "*"), WorkerBeats},
	}
}

var workerName = lazy.Regexp(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// CheckName says what is wrong with a worker's name.
func CheckName(name string) error {
	if !workerName().MatchString(name) {
		return fmt.Errorf("%q is not a name for a worker: take small letters, digits and -, at most 63", name)
	}
	return nil
}
