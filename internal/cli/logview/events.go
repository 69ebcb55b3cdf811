package logview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/cli/present"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
)

// TimeLine shows a turn's events with the time since it began.
func (v View) TimeLine(turnID string) error {
	wanted, err := v.wanted(turnID)
	if err != nil {
		return err
	}
	var began time.Time
	return v.events(turnID, func(e journal.Event) error {
		if began.IsZero() {
			began = e.Time
		}
		if !wanted(e) {
			return nil
		}
		return v.show(e, e.Time.Sub(began).Round(time.Millisecond).String())
	})
}

// wanted gives what picks the events of a turn. A call's status is that of its
// end: it is looked for first.
func (v View) wanted(turnID string) (func(journal.Event) bool, error) {
	if v.Status == "" {
		return v.ofTool, nil
	}
	status := map[string]string{}
	err := v.events(turnID, func(e journal.Event) (err error) {
		switch {
		case e.CallID == "" || !v.ofTool(e):
		case ends(e):
			status[e.CallID], err = statusOf(e)
		case status[e.CallID] == "":
			status[e.CallID] = string(api.StatusOpen)
		}
		return err
	})
	return func(e journal.Event) bool { return status[e.CallID] == v.Status }, err
}

// ofTool also takes what stands for events that are missing.
func (v View) ofTool(e journal.Event) bool {
	return v.Tool == "" || e.Tool == v.Tool || e.Kind == api.EventGap
}

func ends(e journal.Event) bool {
	return e.Kind == api.EventFinished || e.Kind == api.EventFailed
}

func statusOf(e journal.Event) (string, error) {
	var said api.Event
	err := json.Unmarshal(e.JSON, &said)
	return string(said.Status), err
}

// Follow shows events as they happen until ctx is done, of one turn to its end; an empty id
// means all. Of a status there are only the ends of calls: before, nobody knows it.
func (v View) Follow(ctx context.Context, turnID string) error {
	var failed error
	err := v.Source.Follow(ctx, journal.FollowOptions{TurnID: turnID, Last: turnID == ""}, func(e journal.Event) bool {
		failed = v.follow(e, turnID == "")
		return failed == nil
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, failed)
}

// follow shows an event with the time of the day, and its turn where there are several.
func (v View) follow(e journal.Event, several bool) error {
	if !v.ofTool(e) {
		return nil
	}
	if v.Status != "" && e.Kind != api.EventGap {
		if status, err := statusOf(e); err != nil || !ends(e) || status != v.Status {
			return err
		}
	}
	when := e.Time.Local().Format(time.TimeOnly)
	if several {
		when += "  " + terminal.OneLine(e.TurnID)
	}
	return v.show(e, when)
}

func (v View) show(e journal.Event, when string) error {
	if v.JSON {
		return present.Raw(v.Out, e.JSON)
	}
	var said api.Event
	if err := json.Unmarshal(e.JSON, &said); err != nil {
		return err
	}
	err := v.line(e, when, string(e.Kind), terminal.OneLine(text.FirstLine(telling(said))))
	if err != nil || !ends(e) {
		return err
	}
	return v.network(e)
}

func (v View) line(e journal.Event, when, kind, said string) error {
	_, err := fmt.Fprintf(v.Out, "%9s  %-22s %-14s %-12s %s\n", when, kind, terminal.OneLine(e.CallID), terminal.OneLine(e.Tool), said)
	return err
}

// network shows, below the event of a call's end, what the call has reached: its result has
// that. A result that is not there, or can't be read, holds up no others.
func (v View) network(e journal.Event) error {
	raw, err := v.Source.Result(e.TurnID, e.CallID)
	if err != nil {
		return nil
	}
	var r struct {
		Network *api.Network `json:"network"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("the result of the call %q is not JSON: %w", terminal.OneLine(e.CallID), err)
	}
	for _, line := range present.Network(r.Network) {
		if err := v.line(e, "", "network", line); err != nil {
			return err
		}
	}
	return nil
}

// telling is what an event has to say beside its kind. Longer texts come last.
func telling(e api.Event) string {
	parts := []string{string(e.Status), string(e.Interaction)}
	if e.Pending != nil {
		parts = append(parts, fmt.Sprintf("pending %t", *e.Pending))
	}
	if e.TimeoutMs > 0 {
		parts = append(parts, fmt.Sprintf("timeout %s", time.Duration(e.TimeoutMs)*time.Millisecond))
	}
	if e.Worker != "" {
		parts = append(parts, "worker "+e.Worker)
	}
	if e.Reaped > 0 {
		parts = append(parts, fmt.Sprintf("reaped %d", e.Reaped))
	}
	parts = append(parts, string(e.Reason), e.Decider, e.Outcome, string(e.Default), e.By, e.Message, e.Display, e.Prompt)
	if e.Content != nil {
		parts = append(parts, e.Content.Text)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "  ")
}
