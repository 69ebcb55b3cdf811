package network

import (
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Limits are the network limits of one call. Zero fields mean the defaults.
type Limits struct {
	// Connections is the number of open connections, by default 64; further ones are
	// refused.
	Connections int64 `json:"connections"`
	// TotalConnections, SentBytes and ReceivedBytes end a call that exceeds them; 0 means
	// unlimited.
	TotalConnections int64 `json:"totalConnections"`
	SentBytes        int64 `json:"sentBytes"`
	ReceivedBytes    int64 `json:"receivedBytes"`
	// Rate bounds the bytes per second in both directions together; 0 means unlimited.
	Rate int64 `json:"rate"`
	// Idle is the time without traffic after which a connection is closed, by default 10
	// minutes. Dial bounds the time to connect, by default 10 s.
	Idle time.Duration `json:"idle"`
	Dial time.Duration `json:"dial"`
}

// Defaults of Limits, and bounds that cannot be configured.
const (
	defaultConnections = 64
	maxConnections     = 4096
	defaultIdle        = 10 * time.Minute
	DefaultDial        = 10 * time.Second
	maxDial            = time.Minute
	AcceptsPerSecond   = 200
	QueriesPerSecond   = 200
)

// Over returns l with its zero fields set from base.
func (l Limits) Over(base Limits) Limits {
	for _, f := range []struct{ to, from *int64 }{
		{&l.Connections, &base.Connections},
		{&l.TotalConnections, &base.TotalConnections},
		{&l.SentBytes, &base.SentBytes},
		{&l.ReceivedBytes, &base.ReceivedBytes},
		{&l.Rate, &base.Rate},
		{(*int64)(&l.Idle), (*int64)(&base.Idle)},
		{(*int64)(&l.Dial), (*int64)(&base.Dial)},
	} {
		if *f.to == 0 {
			*f.to = *f.from
		}
	}
	return l
}

// DefaultLimits returns the limits of a call for which none are configured.
func DefaultLimits() Limits {
	return Limits{Connections: defaultConnections, Idle: defaultIdle, Dial: DefaultDial}
}

// Applied returns the limits in the form of a result.
func (l Limits) Applied() *api.NetworkLimits {
	l = l.Over(DefaultLimits())
	return &api.NetworkLimits{
		Connections: l.Connections, TotalConnections: l.TotalConnections, SentBytes: l.SentBytes, ReceivedBytes: l.ReceivedBytes,
		BytesPerSecond: l.Rate, IdleMs: l.Idle.Milliseconds(), ConnectTimeoutMs: l.Dial.Milliseconds(),
	}
}

// Validate returns an error if l is invalid.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name        string
		value, most int64
	}{
		{"connections", l.Connections, maxConnections},
		{"connectionsTotal", l.TotalConnections, 0},
		{"sent", l.SentBytes, 0},
		{"received", l.ReceivedBytes, 0},
		{"networkRate", l.Rate, 0},
		{"connectionIdle", int64(l.Idle), 0},
		{"connectTimeout", int64(l.Dial), int64(maxDial)},
	} {
		if f.value < 0 {
			return fmt.Errorf("limit %s: %d is negative: give a positive value, or leave it out for the default", f.name, f.value)
		}
		if f.most > 0 && f.value > f.most {
			return fmt.Errorf("limit %s: %d is over %d: give less", f.name, f.value, f.most)
		}
	}
	return nil
}
