package main

import (
	_ "embed"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

//go:embed testdata/policy.txt
var policyText string

// stated is testdata/policy.txt: "allow", "ask" or "EPERM" by the name of a call.
var stated = readPolicy(policyText)

func readPolicy(text string) map[string]string {
	said := map[string]string{}
	heading := ""
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			for name := range strings.FieldsSeq(line) {
				said[name] = heading
			}
		default:
			heading = strings.TrimSuffix(strings.TrimSpace(line), ":")
		}
	}
	return said
}

const (
	yes            = outcome(0x7fff0000)
	dead           = outcome(0x80000000)
	eperm          = outcome(0x50000 + 1)
	enomem         = outcome(0x50000 + 12)
	einval         = outcome(0x50000 + 22)
	enosys         = outcome(0x50000 + 38)
	eprotonosupp   = outcome(0x50000 + 93)
	esocktnosupp   = outcome(0x50000 + 94)
	eafnosupport   = outcome(0x50000 + 97)
	nativeAMD64    = 0xc000003e
	nativeARM64    = 0xc00000b7
	x32Bits        = 0x40000000
	namespaceFlags = 0x7e020000
)

// want is the policy as a reader of the documentation would state it.
func want(arch string, names map[uint32]string, strict bool, d data) outcome {
	native := map[string]uint32{"amd64": nativeAMD64, "arm64": nativeARM64}[arch]
	if d.arch != native || arch == "amd64" && d.nr&x32Bits != 0 {
		return dead
	}
	name := names[d.nr]
	if strict && (name == "flock" || name == "fcntl" && isLock(uint32(d.args[1]))) {
		return eperm
	}
	switch stated[name] {
	case "allow":
		return yes
	case "EPERM":
		return eperm
	case "ask":
		return wantByArguments(name, d.args)
	}
	return enosys
}

func isLock(command uint32) bool {
	// F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE, F_SETDELEG
	return slices.Contains([]uint32{6, 7, 37, 38, 1024, 1040}, command)
}

func wantByArguments(name string, args [6]uint64) outcome {
	first, second, third := uint32(args[0]), uint32(args[1]), uint32(args[2])
	permit := func(ok bool) outcome {
		if ok {
			return yes
		}
		return eperm
	}
	switch name {
	case "clone":
		return permit(first&namespaceFlags == 0)
	case "ioctl":
		return permit(second != 0x5412 && second != 0x541c)
	case "prctl":
		return permit(first != 35)
	case "personality":
		return permit(slices.Contains([]uint32{0, 8, 0x20000, 0x20008, 0xffffffff}, first))
	case "prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler":
		return permit(first == 0)
	case "setpriority":
		return permit(first == 0 && second == 0)
	case "chmod", "fchmod", "creat", "mknod":
		return permit(second&0o6000 == 0)
	case "fchmodat", "fchmodat2", "mknodat":
		return permit(third&0o6000 == 0)
	case "open":
		return permit(second&0o20000100 == 0 || third&0o6000 == 0)
	case "openat":
		return permit(third&0o20000100 == 0 || uint32(args[3])&0o6000 == 0)
	case "mmap":
		return unlessHuge(uint32(args[3])&0x40000 != 0, enomem)
	case "memfd_create":
		return unlessHuge(second&4 != 0, einval)
	case "shmget":
		return unlessHuge(third&0o4000 != 0, enomem)
	case "fcntl":
		return permit(second != 1024 && second != 1040)
	case "ioprio_set":
		return permit(first == 1 && second == 0)
	case "socketpair":
		if first == unix.AF_UNIX {
			return yes
		}
		return eafnosupport
	case "socket":
		return wantSocket(first, second, third)
	}
	return 0
}

func unlessHuge(pages bool, failure outcome) outcome {
	if pages {
		return failure
	}
	return yes
}

func wantSocket(family, kind, protocol uint32) outcome {
	known := family == unix.AF_NETLINK && protocol == 0
	switch family {
	case unix.AF_UNIX:
		return yes
	case unix.AF_INET, unix.AF_INET6:
		switch kind & 15 {
		case unix.SOCK_STREAM, unix.SOCK_DGRAM:
		case unix.SOCK_RAW, unix.SOCK_PACKET:
			return eperm
		default:
			return esocktnosupp
		}
		known = slices.Contains([]uint32{0, 1, 6, 17, 58, 262}, protocol)
	case unix.AF_NETLINK:
	default:
		return eafnosupport
	}
	if known {
		return yes
	}
	return eprotonosupp
}
