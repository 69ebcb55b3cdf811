//go:build !amd64

package escape

// machineCalls exist on one architecture only.
func machineCalls(*arena) []attack { return nil }
