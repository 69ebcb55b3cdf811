package daemon

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A granted path that does not answer holds up neither this look nor later ones.
func TestAGrantedPathThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l look
		wrong := errors.New("wrong")
		answers := make(chan struct{})
		var looks atomic.Int32
		check := func(at func(string)) error {
			looks.Add(1)
			at("stuck")
			<-answers
			return wrong
		}
		quick := func(func(string)) error { return wrong }
		for range maxLooks {
			if answered, err := l.run(quick); !answered || err != wrong {
				t.Errorf("without the path: answered %t, error %v", answered, err)
			}
			if answered, err := l.run(check); answered || err != nil || l.at.Load() != "stuck" {
				t.Errorf("answered %t, error %v, at %v", answered, err, l.at.Load())
			}
		}
		if answered, err := l.run(check); answered || err != nil || looks.Load() != maxLooks {
			t.Errorf("one too many: answered %t, error %v, %d looks are under way", answered, err, looks.Load())
		}
		close(answers)
		synctest.Wait()
		if answered, err := l.run(check); !answered || err != wrong {
			t.Errorf("once the path answers: answered %t, error %v", answered, err)
		}
	})
}
