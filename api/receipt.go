package api

// Receipt says what was enforced for one call, not what was only requested.
type Receipt struct {
	// Tier is the isolation tier.
	Tier string `json:"tier"`
	// Cgroup is the hierarchy in use: v2, hybrid, v1, or none.
	Cgroup string `json:"cgroup"`
	// Network is "none", "host" or "grants". Read and Write are the granted paths. With
	// tier "none" all three are the caller's, and say so.
	Network string   `json:"network"`
	Read    []string `json:"read"`
	Write   []string `json:"write"`
	// Grants are the names and addresses that the call could reach, with network
	// "grants".
	Grants []string `json:"grants,omitempty"`
	// Shell is set for a command that a shell interprets.
	Shell bool `json:"shell,omitempty"`
	// Data is the host's folder that is the workspace and outlives the call;
	// empty if the workspace was made for the call.
	Data string `json:"data,omitempty"`
	// Secrets are the names of the call's secret files.
	Secrets []string `json:"secrets,omitempty"`
	// UID is the call's user ID on the host.
	UID int `json:"uid"`
	// Strict is set if the stricter of the two system call filters was in force.
	Strict bool `json:"strict,omitempty"`
	// LandlockABI is the version in force; 0 means no Landlock.
	LandlockABI int `json:"landlockAbi"`
	// Enforced names each mechanism that was in force, in a fixed order.
	Enforced []string `json:"enforced"`
	// Degraded names each mechanism that was wanted but missing, and why.
	Degraded []Degradation `json:"degraded"`
}

// Degradation is one missing mechanism.
type Degradation struct {
	Feature string `json:"feature"`
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy"`
}
