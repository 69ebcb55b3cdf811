package fleet

import (
	"testing"
)

// A worker gives back each yes once, of the last ones, and none that it was not given.
func TestAYesThatAWorkerGivesBack(t *testing.T) {
	c := &remote{yeses: map[uint32]func(){}}
	var back []uint32
	for number := range uint32(maxQuestions + 1) {
		answer := replied{number: number}
		answer.answer.Unused = func() { back = append(back, number) }
		c.expectBack(answer)
	}
	for _, number := range []uint32{0, 1, 1, maxQuestions, 1000} {
		c.unused(number)
		c.asking.Wait()
	}
	if len(back) != 2 || back[0] != 1 || back[1] != maxQuestions {
		t.Errorf("given back are %d", back)
	}
}
