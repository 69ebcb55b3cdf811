package fleet

import (
	"testing"
)

// A worker gives back each yes once, of the last ones, and none that it was not given.
func TestAYesThatAWorkerGivesBack(t *testing.T) {
	c := &remote{conversation: conversation{yeses: map[uint32]func(){}}}
	var back []uint32
	for number := range uint32(maxQuestions + 1) {
		c.expectBack(number, func() { back = append(back, number) })
	}
	for _, number := range []uint32{0, 1, 1, maxQuestions, 1000} {
		c.unused(number)
		c.asking.Wait()
	}
	if len(back) != 2 || back[0] != 1 || back[1] != maxQuestions {
		t.Errorf("given back are %d", back)
	}
}
