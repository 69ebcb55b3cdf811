// Package inprocess lets package plugintest call a tool as package plugin serves it, without
// a connection.
package inprocess

import (
	"context"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// Server is what a host calls of a tool.
type Server interface {
	Call(*pluginv1.CallRequest, Events) error
	Cancel(context.Context, *pluginv1.CancelRequest) (*pluginv1.CancelResponse, error)
	Answer(context.Context, *pluginv1.AnswerRequest) (*pluginv1.AnswerResponse, error)
	Acknowledge(context.Context, *pluginv1.AcknowledgeRequest) (*pluginv1.AcknowledgeResponse, error)
}

// Events is where a call's go to.
type Events interface {
	Context() context.Context
	Send(*pluginv1.CallEvent) error
}

// Serve makes the server of a plugin.Registered. Package plugin sets it, whose types cannot
// be named here.
var Serve func(tool any) Server
