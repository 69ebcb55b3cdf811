package telemetry

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stall is one line of a cgroup's pressure.
type stall struct {
	resource, severity string
	seconds            float64
}

// readPressure reads the pressure files of a cgroup2 folder (PSI; Linux 5.2
// for cgroups, Documentation/accounting/psi.rst). It leaves out those that
// are missing: in a root cgroup, on a kernel without PSI.
func readPressure(dir string) (list []stall) {
	if !filepath.IsAbs(dir) {
		return nil
	}
	for _, resource := range []string{"cpu", "memory", "io"} {
		raw, err := os.ReadFile(filepath.Join(dir, resource+".pressure"))
		if err != nil {
			continue
		}
		list = append(list, parsePressure(resource, raw)...)
	}
	return list
}

// parsePressure reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS".
func parsePressure(resource string, raw []byte) (list []stall) {
	for line := range bytes.Lines(raw) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || fields[0] != "some" && fields[0] != "full" {
			continue
		}
		total, ok := strings.CutPrefix(fields[len(fields)-1], "total=")
		us, err := strconv.ParseUint(total, 10, 64)
		if ok && err == nil {
			list = append(list, stall{resource, fields[0], float64(us) / 1e6})
		}
	}
	return list
}
