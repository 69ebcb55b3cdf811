package daemon

import (
	"errors"
	"testing"
	"testing/synctest"
)

// A granted path that does not answer holds up neither this look nor later ones.
func TestAGrantedPathThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l look
		wrong := errors.New("wrong")
		answers, looks := make(chan struct{}), 0
		check := func(at func(string)) error {
			looks++
			at("stuck")
			<-answers
			return wrong
		}
		for range 3 {
			if answered, err := l.run(check); answered || err != nil || l.at.Load() != "stuck" {
				t.Errorf("answered %t, error %v, at %v", answered, err, l.at.Load())
			}
		}
		if looks != 1 {
			t.Errorf("%d looks are under way, want one", looks)
		}
		close(answers)
		synctest.Wait()
		if answered, err := l.run(check); !answered || err != wrong {
			t.Errorf("once the path answers: answered %t, error %v", answered, err)
		}
	})
}
