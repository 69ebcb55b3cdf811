package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/api"
)

func query(f api.Filter) string {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("turn", f.TurnID)
	set("tool", f.Tool)
	set("status", f.Status)
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			values.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.Limit > 0 {
		values.Set("limit", strconv.Itoa(f.Limit))
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// PastTurns lists turns in the history, the last started first.
func (c *Client) PastTurns(ctx context.Context, f api.Filter) ([]api.TurnSummary, error) {
	var list api.TurnSummaries
	err := c.call(ctx, http.MethodGet, "/api/history/turns"+query(f), nil, &list)
	return list.Turns, err
}

// PastCalls lists calls in the history, the last queued first.
func (c *Client) PastCalls(ctx context.Context, f api.Filter) ([]api.CallSummary, error) {
	var list api.CallSummaries
	err := c.call(ctx, http.MethodGet, "/api/history/calls"+query(f), nil, &list)
	return list.Calls, err
}

// PastResult returns the result of a call in the history.
func (c *Client) PastResult(ctx context.Context, turnID, callID string) (*api.Result, error) {
	r := &api.Result{}
	if err := c.call(ctx, http.MethodGet, endpoint("/api/history/turns/", turnID, "/calls/", callID), nil, r); err != nil {
		return nil, err
	}
	normalize([]*api.Result{r})
	return r, nil
}

// Replay calls show with a turn's recorded events whose seq is greater than after,
// exactly as they were first shown, until show returns false or there are no more.
func (c *Client) Replay(ctx context.Context, turnID string, after int64, show func(api.Record) bool) error {
	path := endpoint("/api/history/turns/", turnID, "/events")
	if after > 0 {
		path += "?after=" + strconv.FormatInt(after, 10)
	}
	response, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for in := bufio.NewReader(response.Body); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the replay broke off: %w", err)
		}
		e := api.Record{JSON: line[:len(line)-1]}
		if err := json.Unmarshal(e.JSON, &e.Event); err != nil {
			return fmt.Errorf("cannot read an event of the daemon: %w", err)
		}
		if !show(e) {
			return nil
		}
	}
}
