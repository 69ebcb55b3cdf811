package network

import (
	"fmt"
	"time"

	"github.com/toolhost/toolhost/api"
)

// Limits bound what one call does with its network. Zero fields are the defaults.
type Limits struct {
	// Connections at once; more are refused. The default is 64.
	Connections int64 `json:"connections"`
	// TotalConnections, SentBytes and ReceivedBytes end the call; 0 is unlimited.
	TotalConnections int64 `json:"totalConnections"`
	SentBytes        int64 `json:"sentBytes"`
	ReceivedBytes    int64 `json:"receivedBytes"`
	// Rate bounds the bytes a second, both ways together; 0 is unlimited.
	Rate int64 `json:"rate"`
	// Idle ends a connection on which nothing has moved for so long, by default 10
	// minutes; Dial bounds how long a connection takes to be made, by default 10 s.
	Idle time.Duration `json:"idle"`
	Dial time.Duration `json:"dial"`
}

// Defaults of Limits, and what has no setting.
const (
	defaultConnections = 64
	maxConnections     = 4096
	defaultIdle        = 10 * time.Minute
	DefaultDial        = 10 * time.Second
	maxDial            = time.Minute
	AcceptsPerSecond   = 200
	QueriesPerSecond   = 200
)

// Over fills l's zero fields from base.
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

// DefaultLimits are those of a call that nobody has configured.
func DefaultLimits() Limits {
	return Limits{Connections: defaultConnections, Idle: defaultIdle, Dial: DefaultDial}
}

// Applied is how a result shows the limits.
func (l Limits) Applied() *api.NetworkLimits {
	l = l.Over(DefaultLimits())
	return &api.NetworkLimits{
		Connections: l.Connections, TotalConnections: l.TotalConnections, SentBytes: l.SentBytes, ReceivedBytes: l.ReceivedBytes,
		BytesPerSecond: l.Rate, IdleMs: l.Idle.Milliseconds(), ConnectTimeoutMs: l.Dial.Milliseconds(),
	}
}

// Validate says what is wrong with l, if anything.
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
