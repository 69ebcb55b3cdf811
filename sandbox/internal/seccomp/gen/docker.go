package main

import (
	"slices"

	"github.com/moby/profiles/seccomp"
)

// dockerProfile is Docker's default profile as it resolves for one architecture, without any capability.
type dockerProfile struct {
	known  map[string]bool // named at all, be it for other architectures or for capabilities
	plain  map[string]bool // allowed whatever the arguments
	byArgs map[string][]*seccomp.Syscall
}

// minKernel stands for every kernel that the sandbox runs on: rules for Linux 5.14 and older apply.
var minKernel = seccomp.KernelVersion{Kernel: 5, Major: 14}

// Values of the OCI runtime specification (config-linux.md, "Seccomp").
const (
	actAllow  = "SCMP_ACT_ALLOW"
	opEqualTo = "SCMP_CMP_EQ"
)

// resolveDocker applies Docker's conditions.
func resolveDocker(arch string) dockerProfile {
	d := dockerProfile{map[string]bool{}, map[string]bool{}, map[string][]*seccomp.Syscall{}}
	for _, rule := range seccomp.DefaultProfile().Syscalls {
		for _, name := range rule.Names {
			d.known[name] = true
			switch {
			case rule.Action != actAllow || !applies(rule, arch):
			case len(rule.Args) == 0:
				d.plain[name] = true
			default:
				d.byArgs[name] = append(d.byArgs[name], rule)
			}
		}
	}
	return d
}

// applies says whether a rule is in force on arch without any capability.
func applies(rule *seccomp.Syscall, arch string) bool {
	if f := rule.Excludes; f != nil && (slices.Contains(f.Arches, arch) || f.MinKernel != nil && reached(*f.MinKernel)) {
		return false
	}
	f := rule.Includes
	return f == nil || len(f.Caps) == 0 &&
		(len(f.Arches) == 0 || slices.Contains(f.Arches, arch)) &&
		(f.MinKernel == nil || reached(*f.MinKernel))
}

func reached(v seccomp.KernelVersion) bool {
	return v.Kernel < minKernel.Kernel || v.Kernel == minKernel.Kernel && v.Major <= minKernel.Major
}

// firstArgs are the values of its first argument that Docker allows a call by equality.
func (d dockerProfile) firstArgs(name string) []uint32 {
	var values []uint32
	for _, rule := range d.byArgs[name] {
		if arg := rule.Args[0]; len(rule.Args) == 1 && arg.Index == 0 && arg.Op == opEqualTo {
			values = append(values, uint32(arg.Value))
		}
	}
	return values
}
