// Command collector is the OpenTelemetry Collector's own OTLP receiver, for tests that want to know what a real one takes.
//
// It listens on free ports of loopback, for gRPC and for HTTP. Each line of its output is JSON: the receiver's log, whose
// "Starting GRPC server" and "Starting HTTP server" have the endpoint, and a span, a metric or a record of a log for each that got through.
// A line is written before its sender has the answer. It ends when its input does, so that no test leaves it behind.
//
// It is a module of its own, since the receiver needs many others.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const anyPort = "127.0.0.1:0"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	parts, err := newReceivers(ctx, logger())
	if err != nil {
		return err
	}
	// They are one receiver, which starts and ends but once.
	for _, part := range parts {
		if err := part.Start(ctx, host{}); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	for _, part := range parts {
		err = errors.Join(err, part.Shutdown(ctx))
	}
	return err
}

// newReceivers are the receiver's three signals, with its defaults but for the ports.
func newReceivers(ctx context.Context, log *zap.Logger) ([]component.Component, error) {
	factory := otlpreceiver.NewFactory()
	config, ok := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	if !ok {
		return nil, errors.New("bug: the receiver has another configuration")
	}
	config.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = anyPort
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = anyPort
	settings := receiver.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger: log, TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(), Resource: pcommon.NewResource(),
		},
	}
	toTraces, err := consumer.NewTraces(writeSpans)
	if err != nil {
		return nil, err
	}
	toMetrics, err := consumer.NewMetrics(writeMetrics)
	if err != nil {
		return nil, err
	}
	toLogs, err := consumer.NewLogs(writeLogs)
	if err != nil {
		return nil, err
	}
	traces, err := factory.CreateTraces(ctx, settings, config, toTraces)
	if err != nil {
		return nil, err
	}
	metrics, err := factory.CreateMetrics(ctx, settings, config, toMetrics)
	if err != nil {
		return nil, err
	}
	logs, err := factory.CreateLogs(ctx, settings, config, toLogs)
	return []component.Component{traces, metrics, logs}, err
}

// logger writes to where spans and metrics go, in whole lines too.
func logger() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(os.Stdout), zap.InfoLevel))
}

// host has no extensions.
type host struct{}

// GetExtensions implements component.Host.
func (host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{}
}
