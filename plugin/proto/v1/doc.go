// Package pluginv1 is toolhost.plugin.v1, the contract between a tool's
// process and its host, generated from plugin.proto (make proto).
package pluginv1
