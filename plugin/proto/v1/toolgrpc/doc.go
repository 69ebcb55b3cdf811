// Package toolgrpc is the service of toolhost.plugin.v1 as generated for grpc-go,
// for programs that serve or call it by that. Package plugin and the host do
// without: grpc-go is initialized where it is linked, which takes a tool 2 ms.
package toolgrpc
