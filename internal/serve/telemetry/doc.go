// Package telemetry counts what a host does and exports it: metrics in a
// registry of its own, which Prometheus can scrape, and over OTLP, where that
// is configured, the same metrics and a trace of each call.
//
// It learns everything from the records of turns, once those who waited for
// them go on. No label and no attribute is made of free text: tools are those
// of the catalogue, all other words are from fixed sets, with "other" for the
// rest. Arguments, results and messages are never looked at.
package telemetry
