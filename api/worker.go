package api

// States of a Worker.
const (
	WorkerTaking   = "taking"
	WorkerDraining = "draining" // it takes no more calls
	WorkerDrained  = "drained"  // nor has it any of the daemon's: it goes on for others
	WorkerSuspect  = "suspect"  // it was not heard for 1.5 s, or does not hear the daemon
	// WorkerIncompatible: it speaks another protocol than the daemon, and gets no calls.
	WorkerIncompatible = "incompatible"
)

// Worker is one of a fleet, as the daemon knows it.
type Worker struct {
	Name string `json:"name"`
	// State is one of those above.
	State   string            `json:"state" jsonschema:"taking, draining (it takes no more calls), drained (nor has it any of this daemon's: it goes on for others), suspect (it was not heard for 1.5 s, or does not hear the daemon) or incompatible (it speaks another protocol than the daemon, and gets no calls)"`
	Free    int               `json:"free" jsonschema:"slots that no call has"`
	Slots   int               `json:"slots"`
	Labels  map[string]string `json:"labels,omitempty"`
	Version string            `json:"version"`
	// Trouble is why its calls fail, or it may have none, though it is heard.
	Trouble string `json:"trouble,omitempty" jsonschema:"why its calls do not start, or what is wrong with it"`
	// SilentMs is how long it was not heard.
	SilentMs int64 `json:"silentMs" jsonschema:"how long it was not heard"`
}

// Engine are the NATS servers of a fleet that has some of its own.
type Engine struct {
	URL string `json:"url"`
	// Trouble is why the daemon is not connected to one; Remedy is what to do. Without
	// trouble it is.
	Trouble string `json:"trouble,omitempty" jsonschema:"why the daemon is not connected to one of them; absent where it is"`
	Remedy  string `json:"remedy,omitempty" jsonschema:"what to do"`
	// SilentMs is how long it was not connected.
	SilentMs int64 `json:"silentMs,omitempty" jsonschema:"how long it was not connected"`
}

// Workers are those of a fleet, by name.
type Workers struct {
	Workers []Worker `json:"workers"`
	Engine  Engine   `json:"engine,omitzero" jsonschema:"absent where it is the daemon's own"`
	// Left and Removed are names of others.
	Left    []string `json:"left,omitempty" jsonschema:"names of workers that were drained or stopped, and have ended since the daemon heard them"`
	Removed []string `json:"removed,omitempty" jsonschema:"names of workers that were removed"`
}
