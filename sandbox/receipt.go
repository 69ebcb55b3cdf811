package sandbox

// TierNone isolates lifetimes only: a PID namespace, a private /proc and
// socket folder, no capabilities gained.
const TierNone = "none"

// Receipt says what was enforced for one call. It never claims what was only
// asked for.
type Receipt struct {
	// Tier is the isolation tier, TierNone for now.
	Tier string `json:"tier"`
	// Cgroup is the hierarchy in use: v2, hybrid or v1.
	Cgroup string `json:"cgroup"`
	// Enforced names each mechanism that was in force, in a fixed order.
	Enforced []string `json:"enforced"`
	// Degraded names each mechanism that was wanted and missing, and why.
	Degraded []Degradation `json:"degraded"`
}

// Degradation is one missing mechanism.
type Degradation struct {
	Feature string `json:"feature"`
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy"`
}
