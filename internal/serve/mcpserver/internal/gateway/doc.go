// Package gateway passes on to MCP clients what wrapped MCP servers have beside tools: prompts,
// resources and their templates, completion, subscriptions, what servers announce, and the
// roots of clients. It knows of calls only that its Host makes them.
//
// Which server has what: offers.go (what is listed), requests.go (what is asked of servers),
// renamed.go (URIs as clients know them), greeting.go (what servers say of themselves).
//
// What servers announce: notices.go, mailbox.go (what waits to be sent to a session),
// subscriptions.go (who watches what, by source.go), subscribe.go, updates.go, pending.go (those
// that come before a subscription's answer), streams.go, renewal.go (subscriptions of a process
// that has ended), opened.go, relist.go (lists that have changed) and roots.go.
package gateway
