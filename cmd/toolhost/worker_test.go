//go:build !nofleet

package main

import (
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// A worker that was drained ends well, also if something cannot be removed.
func TestADrainedWorkerEndsWell(t *testing.T) {
	busy, drained := errors.New("device or resource busy"), make(chan struct{})
	if leave(busy, drained, hclog.NewNullLogger()) == nil || leave(nil, drained, hclog.NewNullLogger()) != nil {
		t.Error("one that was not drained hides its error, or has made one up")
	}
	close(drained)
	if err := leave(busy, drained, hclog.NewNullLogger()); err != nil {
		t.Error(err)
	}
}
