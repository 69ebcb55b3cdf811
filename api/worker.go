package api

// States of a Worker.
const (
	WorkerTaking   = "taking"
	WorkerDraining = "draining" // it takes no more calls
	WorkerDrained  = "drained"  // it takes no more calls and has none of this daemon's; it may serve others
	WorkerSuspect  = "suspect"  // it was not heard for 1.5 s, or does not hear the daemon
	// WorkerIncompatible means that the worker speaks another protocol and gets no calls.
	WorkerIncompatible = "incompatible"
)

// Worker is a worker of a fleet, as the daemon knows it.
type Worker struct {
	Name string `json:"name"`
	// State is one of the Worker constants above.
	State   string            `json:"state" jsonschema:"taking, draining (it takes no more calls), drained (nor has it any of this daemon's: it goes on for others), suspect (it was not heard for 1.5 s, or does not hear the daemon) or incompatible (it speaks another protocol than the daemon, and gets no calls)"`
	Free    int               `json:"free" jsonschema:"slots that no call has"`
	Slots   int               `json:"slots"`
	Labels  map[string]string `json:"labels,omitempty"`
	Version string            `json:"version"`
	// Trouble is why the worker's calls fail, or it may have no calls, though it is heard.
	Trouble string `json:"trouble,omitempty" jsonschema:"why its calls do not start, or what is wrong with it"`
	// SilentMs is the time since the worker was last heard.
	SilentMs int64 `json:"silentMs" jsonschema:"how long it was not heard"`
}

// Engine describes a fleet's NATS servers, if they are not the daemon's own.
type Engine struct {
	URL string `json:"url"`
	// Trouble is why the daemon is not connected to a server, empty if it is; Remedy is
	// what to do.
	Trouble string `json:"trouble,omitempty" jsonschema:"why the daemon is not connected to one of them; absent where it is"`
	Remedy  string `json:"remedy,omitempty" jsonschema:"what to do"`
	// SilentMs is how long the daemon was not connected.
	SilentMs int64 `json:"silentMs,omitempty" jsonschema:"how long it was not connected"`
}

// Workers lists the workers of a fleet, sorted by name.
type Workers struct {
	Workers []Worker `json:"workers"`
	Engine  Engine   `json:"engine,omitzero" jsonschema:"absent where it is the daemon's own"`
	// Left are workers that were drained or stopped and have ended; Removed were removed.
	Left    []string `json:"left,omitempty" jsonschema:"names of workers that were drained or stopped, and have ended since the daemon heard them"`
	Removed []string `json:"removed,omitempty" jsonschema:"names of workers that were removed"`
}
