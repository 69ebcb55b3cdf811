package cgroup

// attributeOOM splits kills between the own limit and ancestors'. Where both
// ran out during one group's life the kills can't be told apart: the own wins.
func attributeOOM(c oomCounts) (own, ancestor int64) {
	if c.own > 0 {
		return c.kills, 0
	}
	return 0, c.kills
}

// pidsEvidence is what a kernel tells about failed forks.
type pidsEvidence struct {
	hits  int64 // the "max" line of the group's pids.events
	peak  int64 // pids.peak, or the highest pids.current that was seen
	limit int64 // our own limit, 0 if none
	exact bool  // hits counts the own limit only (v2, Linux 6.11)
}

// attributePids splits hits. v1, and v2 before Linux 6.11, count a fork that
// failed on an ancestor's limit in the forking group. Its own limit can only
// have refused one while the count stood at it, so a lower peak proves the
// ancestor's. Where both were reached the own wins.
// Source: kernel/cgroup/pids.c, pids_event.
func attributePids(e pidsEvidence) (own, ancestor int64) {
	if e.exact || e.limit > 0 && e.peak >= e.limit {
		return e.hits, 0
	}
	return 0, e.hits
}
