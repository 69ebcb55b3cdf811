package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/api"
	"github.com/toolhost/toolhost/internal/journal"
	"github.com/toolhost/toolhost/internal/signals"
	"github.com/toolhost/toolhost/internal/terminal"
	"github.com/toolhost/toolhost/internal/text"
)

// timeLine prints a turn's events with the time since it began.
func (f *logFlags) timeLine(w io.Writer, l record, id string) error {
	wanted, err := f.wanted(l, id)
	if err != nil {
		return err
	}
	var began time.Time
	var failed error
	err = l.Events(id, 0, func(e journal.Event) bool {
		if began.IsZero() {
			began = e.Time
		}
		if wanted(e) {
			failed = f.print(w, l, e, e.Time.Sub(began).Round(time.Millisecond).String())
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}

// wanted gives what picks the events of a turn. A call's status is that of its
// end: it is looked for first.
func (f *logFlags) wanted(l record, id string) (func(journal.Event) bool, error) {
	if f.status == "" {
		return f.ofTool, nil
	}
	status := map[string]string{}
	var failed error
	err := l.Events(id, 0, func(e journal.Event) bool {
		switch {
		case e.CallID == "" || !f.ofTool(e):
		case ends(e):
			status[e.CallID], failed = statusOf(e)
		case status[e.CallID] == "":
			status[e.CallID] = string(api.StatusOpen)
		}
		return failed == nil
	})
	return func(e journal.Event) bool { return status[e.CallID] == f.status }, errors.Join(err, failed)
}

// ofTool also takes what stands for events that are missing.
func (f *logFlags) ofTool(e journal.Event) bool {
	return f.tool == "" || e.Tool == f.tool || e.Kind == api.EventGap
}

func ends(e journal.Event) bool {
	return e.Kind == api.EventFinished || e.Kind == api.EventFailed
}

func statusOf(e journal.Event) (string, error) {
	var said api.Event
	err := json.Unmarshal(e.JSON, &said)
	return string(said.Status), err
}

// goOn prints events as they happen, of one turn to its end. Of a status there
// are only the ends of calls: before, nobody knows it.
func (f *logFlags) goOn(w io.Writer, l record, id string) error {
	ctx, stop := signal.NotifyContext(context.Background(), signals.NotIgnored(os.Interrupt, syscall.SIGTERM)...)
	defer stop()
	var failed error
	err := l.Follow(ctx, journal.FollowOptions{TurnID: id, Last: id == ""}, func(e journal.Event) bool {
		if !f.ofTool(e) {
			return true
		}
		if f.status != "" {
			if status, err := statusOf(e); e.Kind != api.EventGap && (err != nil || !ends(e) || status != f.status) {
				failed = err
				return err == nil
			}
		}
		when := e.Time.Local().Format(time.TimeOnly)
		if id == "" { // of several turns
			when += "  " + terminal.OneLine(e.TurnID)
		}
		failed = f.print(w, l, e, when)
		return failed == nil
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, failed)
}

func (f *logFlags) print(w io.Writer, l record, e journal.Event, when string) error {
	if f.json {
		return printRaw(w, e.JSON)
	}
	var said api.Event
	if err := json.Unmarshal(e.JSON, &said); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%9s  %-22s %-14s %-12s %s\n", when, e.Kind, terminal.OneLine(e.CallID), terminal.OneLine(e.Tool), terminal.OneLine(text.FirstLine(telling(said))))
	if err != nil {
		return err
	}
	return f.printNetwork(w, l, e)
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
