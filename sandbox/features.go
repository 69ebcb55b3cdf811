package sandbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// State says whether a host has a feature.
type State int

// States. Unknown means that the trial was inconclusive; it counts as missing,
// and the next Probe tries again.
const (
	Unknown State = iota
	Yes
	No
)

func (s State) String() string { return [...]string{"unknown", "yes", "no"}[s] }

// Names of the features that sandboxes use.
const (
	FeatureUserNS        = "userns"
	FeatureMountNS       = "mountns"
	FeaturePIDNS         = "pidns"
	FeatureNetNS         = "netns"
	FeatureIPCNS         = "ipcns"
	FeatureUTSNS         = "utsns"
	FeatureCgroupNS      = "cgroupns"
	FeatureRoot          = "rootfs"
	FeatureProc          = "procfs"
	FeatureOwnUID        = "ownUid"
	FeatureCapabilities  = "capabilities"
	FeatureSeccomp       = "seccomp"
	FeatureLandlock      = "landlock"
	FeatureLandlockScope = "landlockScope"
)

// optionalFeatures are those that a call can do without.
var optionalFeatures = []string{FeatureLandlock, FeatureLandlockScope}

// Finding is the result of the trial of one feature.
type Finding struct {
	Feature string `json:"feature"`
	State   State  `json:"-"`
	// Use is what the feature is for.
	Use string `json:"use"`
	// Reason and Remedy are set unless State is Yes.
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Optional reports whether a call can run without the feature.
func (f Finding) Optional() bool { return slices.Contains(optionalFeatures, f.Feature) }

// uses say what each feature does for a call, in the receipt's order.
var uses = []struct{ feature, use string }{
	{FeatureUserNS, "a call has no rights over anything outside"},
	{FeatureMountNS, "a call sees files of its own only"},
	{FeaturePIDNS, "a call sees its own processes only, and ends with the first of them"},
	{FeatureNetNS, "a call has no network"},
	{FeatureIPCNS, "System V IPC and message queues are the call's own"},
	{FeatureUTSNS, "the host's name is hidden"},
	{FeatureCgroupNS, "the cgroup's place is hidden"},
	{FeatureOwnUID, "each call is a user of its own"},
	{FeatureRoot, "a minimal, read-only root; sized /tmp, /dev/shm and workspace"},
	{FeatureProc, "a private /proc, with what reveals the host masked"},
	{FeatureCapabilities, "no capabilities, and no way to gain any"},
	{FeatureSeccomp, "an allow-list of system calls"},
	{FeatureLandlock, "a second layer under the mounts: writing only where granted"},
	{FeatureLandlockScope, "no signals and no abstract sockets to anything outside"},
}

// Features are the features of a host, as found by Probe. They are immutable.
type Features struct {
	findings map[string]Finding
	landlock int // ABI, 0 for none
	layout   layout
	// lifetimes is what TierNone can have.
	lifetimes isolation
	// ranged: there are users of calls' own, beside the caller.
	ranged bool
	root   bool // the host is root
	caller [2]int
	// processors of the machine; 0 if not known.
	processors int64
	hard       hardLimits
	untried    error
}

// Findings returns the findings of all features in a fixed order.
func (f Features) Findings() []Finding {
	var list []Finding
	for _, u := range uses {
		list = append(list, f.find(u.feature))
	}
	return list
}

// Untried returns nil if the features are known, else why they are not: the host
// could not start anything, for example for lack of descriptors.
func (f Features) Untried() error { return f.untried }

func (f Features) find(feature string) Finding {
	found, ok := f.findings[feature]
	if !ok {
		found = Finding{Feature: feature, Reason: "not tried", Remedy: "run toolhost doctor"}
	}
	for _, u := range uses {
		if u.feature == feature {
			found.Use = u.use
		}
	}
	return found
}

// Without returns f without the feature. Plans made with it show what would
// happen on such a host.
func (f Features) Without(feature string) Features {
	f = f.with(Finding{Feature: feature, State: No, Reason: "taken away", Remedy: "give it back"})
	switch feature {
	case FeatureOwnUID:
		f.ranged = false
	case FeatureLandlock:
		f = f.withoutLandlock(f.find(feature))
	case FeatureLandlockScope:
		f.landlock = min(f.landlock, 5)
	case FeaturePIDNS:
		f.lifetimes = weakest()
	}
	return f
}

// with is f with one finding changed.
func (f Features) with(found Finding) Features {
	findings := map[string]Finding{}
	maps.Copy(findings, f.findings)
	findings[found.Feature] = found
	f.findings = findings
	return f
}

// MissingError means that a policy needs a feature that this host lacks.
type MissingError struct{ Finding }

func (e *MissingError) Error() string {
	said := "is missing"
	if e.State == Unknown {
		said = "could not be tried"
	}
	return fmt.Sprintf("cannot sandbox the call: %s (%s) %s: %s; %s", e.Feature, e.Use, said, e.Reason, e.Remedy)
}

// layout is how this host's root is arranged, as far as calls see it.
type layout struct {
	links []link   // such as /bin to usr/bin
	binds []string // read-only parts of the runtime
}

type link struct{ target, path string }

// runtimeDirs hold programs and libraries; runtimeFiles, and what runtimePatterns
// match, are what these read at run time and everybody may know. Links in Debian's
// Java lead to its settings in /etc.
var (
	runtimeDirs  = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
	runtimeFiles = []string{
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
		"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust",
		"/etc/localtime", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/terminfo",
		"/etc/fonts",
	}
	runtimePatterns = []string{"/etc/java-*-openjdk"}
)

// findLayout reads the root's arrangement below root, which is "" but in tests.
func findLayout(root string) layout {
	var l layout
	for _, path := range slices.Concat(runtimeDirs, runtimeFiles, matches(root, runtimePatterns)) {
		info, err := os.Lstat(root + path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink == 0:
			l.binds = append(l.binds, path)
		default:
			if to, err := os.Readlink(root + path); err == nil {
				l.links = append(l.links, link{to, path})
			}
		}
	}
	return l
}

// matches are the paths below root that patterns stand for.
func matches(root string, patterns []string) []string {
	var paths []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(root + pattern) // no pattern is malformed
		for _, path := range found {
			paths = append(paths, strings.TrimPrefix(path, root))
		}
	}
	return paths
}

// Runtime reports whether path is part of the runtime that every call sees.
func (f Features) Runtime(path string) bool {
	path = withoutLinks(path)
	for _, dir := range f.layout.binds {
		if strings.HasPrefix(dir, "/etc") {
			continue
		}
		if Within(filepath.Clean(path), dir) {
			return true
		}
	}
	return false
}
