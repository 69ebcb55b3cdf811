package escape

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Expect is what the outside knows and the inside is held against. The zero value is a sandbox with the defaults of each
// field, and knows no host.
type Expect struct {
	// Sandboxed says that the probe runs in a sandbox that is thrown away afterwards. Without it probes leave out what
	// would touch the machine: they ask for access instead of creating a file, and mount in a namespace of their own only.
	// It is not believed where Namespaces does not name the host's mount namespace, or where the probe is still in it.
	Sandboxed bool `json:"sandboxed,omitempty"`

	// UID and GID are the ids inside; 0 accepts any but root's. Groups are the supplementary groups; default none.
	UID    int   `json:"uid,omitempty"`
	GID    int   `json:"gid,omitempty"`
	Groups []int `json:"groups,omitempty"`
	// FDs are the open descriptors beside 0 to 2; default none.
	FDs []int `json:"fds,omitempty"`

	// Writable are the folders below which anything may be written; default /workspace, /tmp and /dev/shm.
	Writable []string `json:"writable,omitempty"`
	// Bound are further mount points that may show a host file system, and may be seen in /.
	Bound []string `json:"bound,omitempty"`
	// Tree are path.Match patterns of what / and the folders in it may hold, one or two levels deep; default a minimal runtime.
	Tree []string `json:"tree,omitempty"`
	// Absent are paths of the host that must not be there.
	Absent []string `json:"absent,omitempty"`
	// MaxTmpfsBytes bounds each tmpfs; default less than half of the machine's memory.
	MaxTmpfsBytes uint64 `json:"maxTmpfsBytes,omitempty"`
	// HostNetwork says that the admin gave the host's network: its facts only inform then.
	HostNetwork bool `json:"hostNetwork,omitempty"`

	// Namespaces are the inode numbers of the host's namespaces, named as in /proc/self/ns; default the kernel's initial ones.
	Namespaces map[string]uint64 `json:"namespaces,omitempty"`
	// Hostname is the host's; empty checks nothing.
	Hostname string `json:"hostname,omitempty"`
	// HostPID is a process of the host, by the host's count; 0 for none.
	HostPID int `json:"hostPid,omitempty"`
	// Canary is a string in the environment of the host's processes.
	Canary Secret `json:"canary,omitempty"`

	// Abstract names an abstract stream socket that listens on the host, without the leading NUL or @.
	Abstract string `json:"abstract,omitempty"`
	// PathSocket is the path of a stream socket that listens on the host.
	PathSocket string `json:"pathSocket,omitempty"`
	// TCPPort listens on the host's 127.0.0.1.
	TCPPort int `json:"tcpPort,omitempty"`
	// IPCKey is the key of a System V shared memory segment, semaphore set and message queue of the host.
	IPCKey int `json:"ipcKey,omitempty"`
	// Queue names a POSIX message queue of the host, without the slash.
	Queue string `json:"queue,omitempty"`
}

// Secret is a string that its JSON does not show, so that a search for it does not find the argument that brought it.
type Secret string

// MarshalText writes the secret in hexadecimal.
func (s Secret) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, []byte(s)), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Secret) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	*s = Secret(b)
	return err
}

// Args returns the arguments for Main: e as JSON, then the names of groups; none are all.
func (e Expect) Args(names ...string) []string {
	b, err := json.Marshal(e)
	if err != nil {
		panic("bug: cannot marshal Expect: " + err.Error())
	}
	return append([]string{string(b)}, names...)
}

// namespaceKinds are the links in /proc/self/ns with the flag that makes a new one, in no order that matters.
func namespaceKinds() []namespaceKind {
	return []namespaceKind{
		{"mnt", syscall.CLONE_NEWNS, 0},
		{"uts", syscall.CLONE_NEWUTS, 0xEFFFFFFE},
		{"ipc", syscall.CLONE_NEWIPC, 0xEFFFFFFF},
		{"user", syscall.CLONE_NEWUSER, 0xEFFFFFFD},
		{"pid", syscall.CLONE_NEWPID, 0xEFFFFFFC},
		{"net", syscall.CLONE_NEWNET, 0},
		{"cgroup", syscall.CLONE_NEWCGROUP, 0xEFFFFFFB},
		{"time", syscall.CLONE_NEWTIME, 0},
	}
}

// namespaceKind has the inode number of the kernel's initial namespace where that is fixed (include/linux/proc_ns.h).
type namespaceKind struct {
	name    string
	flag    uintptr
	initial uint64
}

// Outside returns what there is to know of the calling process as the host: its namespaces, hostname and pid.
func Outside() (Expect, error) {
	host, err := os.Hostname()
	if err != nil {
		return Expect{}, fmt.Errorf("cannot tell the hostname: %w", err)
	}
	e := Expect{Hostname: host, HostPID: os.Getpid(), Namespaces: map[string]uint64{}}
	for _, kind := range namespaceKinds() {
		inode, err := inodeOf("/proc/self/ns/" + kind.name)
		if err != nil {
			return Expect{}, fmt.Errorf("cannot tell the host's %s namespace: %w", kind.name, err)
		}
		e.Namespaces[kind.name] = inode
	}
	return e, nil
}

func inodeOf(path string) (uint64, error) {
	var st syscall.Stat_t
	err := syscall.Stat(path, &st)
	return st.Ino, err
}

// boxed says whether what the probe mounts and makes is gone with its mount namespace.
func (e Expect) boxed() bool {
	inode, err := inodeOf("/proc/self/ns/mnt")
	host, known := e.Namespaces["mnt"]
	return e.Sandboxed && known && err == nil && inode != host
}

// writable are the folders that may be written.
func (e Expect) writable() []string {
	if e.Writable == nil {
		return []string{"/workspace", "/tmp", "/dev/shm"}
	}
	return e.Writable
}

// mayWrite says whether path is in a folder that may be written.
func (e Expect) mayWrite(path string) bool {
	return slices.ContainsFunc(e.writable(), func(dir string) bool { return below(path, dir) })
}

// below says whether path is dir or in it.
func below(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
