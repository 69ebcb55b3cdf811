package present

import (
	"github.com/docker/go-units"

	"github.com/toolhost/toolhost/api"
)

// limitPhrase names the limit that has ended a call, with its value. It is empty for
// the end of a call by anything else.
func limitPhrase(r *api.Result) string {
	l := r.Limits
	switch r.Status {
	case api.StatusOOM:
		if r.Reason == api.ReasonMemory && l.MemoryBytes > 0 {
			return "over its memory limit of " + size(l.MemoryBytes)
		}
	case api.StatusPidsLimit:
		return "at its limit of " + count(int(l.Pids), "process or thread", "processes and threads")
	case api.StatusCPULimit:
		return "over its limit of CPU time of " + Elapsed(l.CPUTimeMs)
	case api.StatusOutputLimit:
		return "over its limit of all output of " + size(l.OutputTotalBytes)
	case api.StatusNetworkLimit:
		return networkLimitPhrase(r.Reason, l.Network)
	}
	return ""
}

func networkLimitPhrase(reason api.Reason, l *api.NetworkLimits) string {
	switch {
	case l == nil:
		return ""
	case reason == "connectionsTotal":
		return "over its network's limit of " + count(int(l.TotalConnections), "connection", "connections") + " in total"
	case reason == "sent":
		return "over its network's limit of " + size(l.SentBytes) + " sent"
	case reason == "received":
		return "over its network's limit of " + size(l.ReceivedBytes) + " received"
	}
	return ""
}

func size(bytes int64) string { return units.BytesSize(float64(bytes)) }
