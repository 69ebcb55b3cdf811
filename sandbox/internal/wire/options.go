package wire

// File descriptors that the launcher is born with. After SpecFD come, in this
// order: cgroup.kill where Options.Kill is set, the tool's extra files, what
// the launcher only holds, and the trees that the zygote has staged.
const (
	ControlFD = 3
	SpecFD    = 4
)

// Tasks bounds what a launcher adds to its call's group: itself, the process that
// has cloned it until that is reaped, and the thread that leaves the old root.
const Tasks = 3

// Options is what a launcher is told, in a file at SpecFD.
type Options struct {
	// Namespaced says that the launcher is PID 1 of a PID namespace and owns
	// its mount namespace.
	Namespaced bool
	// Proc asks for a new /proc that shows this PID namespace.
	Proc bool
	// Kill says that there is an open cgroup.kill of the call's group, to be
	// written where ending the launcher does not end the tree.
	Kill bool
	// Extra is how many files follow for the tool, as its descriptors 3 and
	// up. Held is how many the launcher only holds, Staged how many trees.
	Extra, Held, Staged int64
	// Lease says that the last of the files that are held is a timer; where that has run
	// out, the launcher starts nothing and ends the tree. Others may share it.
	Lease bool
	// Waits says that the launcher is to start nothing before KindBegin comes, whose Tool
	// takes the place of this one.
	Waits bool
	// SocketDir is where the tool puts its socket; the launcher covers it with
	// a small tmpfs of its own where it is namespaced. Empty: none.
	SocketDir string
	Tool      Tool
	// Confine asks for the native tier's root file system and restrictions,
	// which Root describes.
	Confine bool
	Root    Root
}

// Tool is the program that a launcher starts.
type Tool struct {
	// TimerNS is the time, in nanoseconds from when the launcher reads it, after which
	// that ends the tree by itself; 0 is never.
	TimerNS int64
	// Dir is the tool's working directory, Path its executable, Args its whole
	// argument vector and Env its whole environment.
	Dir, Path string
	Args, Env []string
}

// Root is the world that a confined tool sees.
type Root struct {
	// Bytes bounds the root's own tmpfs, which is read-only for the tool.
	Bytes  int64
	Mounts []Mount
	Links  []Link
	Files  []Text
	// Masked and ReadOnly are paths below /proc; those that don't exist here
	// are left alone.
	Masked, ReadOnly []string
	Hostname         string
	// Sysctls are written before they become read-only, if they exist.
	Sysctls []Text
	Limits  []Rlimit
	// Workspace is the folder whose descriptor the host is given; empty: none.
	Workspace string
	// Loopback brings the interface lo up. Addresses are added to it; Routes are
	// networks that become the call's own whole.
	Loopback          bool
	Addresses, Routes []Network
	// Listen are the sockets to bind and to hand to the host (KindSockets).
	Listen []Listener
	// CgroupNS makes the call's own cgroup the root of what it sees.
	CgroupNS bool
	// Landlock is the ABI to use, 0 for none; Writable are the folders and
	// files that it leaves writable.
	Landlock int64
	Writable []string
	// Seccomp is the filter's profile.
	Seccomp int64
	// TimerSlackNS is how late timers may be (PR_SET_TIMERSLACK(2const)); 0 leaves
	// it as it is.
	TimerSlackNS int64
}

// Lone says whether the network is lo alone.
func (r Root) Lone() bool {
	return r.Loopback && len(r.Addresses)+len(r.Routes)+len(r.Listen) == 0
}

// Kinds of mount.
const (
	MountBind   = iota // a path that anybody may reach
	MountStaged        // the next tree that the zygote has staged
	MountTmpfs
	MountProc
	MountMask  // something empty over what is there
	MountFixed // makes what is there read-only, or with Write a mount point alone
	MountMqueue
)

// Mount is one file system of the tool's, in the order of mounting.
type Mount struct {
	Kind           int64
	Source, Target string
	// Write leaves it writable. NoExec and Device as in mount(8); everything
	// is nosuid, and nodev unless Device.
	Write, NoExec, Device bool
	// Optional: what isn't there is left out.
	Optional bool
	// Bytes, Inodes and Mode are a tmpfs's.
	Bytes, Inodes, Mode int64
	// OnDevice and OnInode are what MountMask and MountFixed must find there.
	OnDevice, OnInode int64
}

// Link is a symbolic link of the root's.
type Link struct{ Target, Path string }

// Text is a small file of the root's; Private is for its owner alone to read.
type Text struct {
	Path, Content string
	Private       bool
}

// Network is an address with the length of its prefix. High and Low are its
// bytes in network order; of IPv4, Low alone, as a number of 32 bits.
type Network struct {
	V6        bool
	High, Low int64
	Bits      int64
}

// Listener is a TCP socket that listens, or with Datagram a UDP socket.
type Listener struct {
	Datagram bool
	Address  Network // its Bits mean nothing
	Port     int64
}

// Rlimit is one limit of setrlimit(2), soft and hard.
type Rlimit struct{ Resource, Value int64 }

// Encode renders t as bytes.
func (t Tool) Encode() []byte {
	c := codec{}
	t.visit(&c)
	return c.buf
}

// usualBytes is more than most options have.
const usualBytes = 8 << 10

// Encode renders o as bytes.
func (o Options) Encode() []byte {
	c := codec{buf: make([]byte, 0, usualBytes)}
	o.visit(&c)
	return c.buf
}

func (o *Options) visit(c *codec) {
	for _, v := range []*bool{&o.Namespaced, &o.Proc, &o.Kill, &o.Confine, &o.Lease, &o.Waits} {
		c.flag(v)
	}
	for _, v := range []*int64{&o.Extra, &o.Held, &o.Staged} {
		c.number(v)
	}
	c.text(&o.SocketDir)
	o.Tool.visit(c)
	o.Root.visit(c)
}

func (t *Tool) visit(c *codec) {
	c.number(&t.TimerNS)
	c.text(&t.Dir)
	c.text(&t.Path)
	texts(c, &t.Args)
	texts(c, &t.Env)
}

func (r *Root) visit(c *codec) {
	c.flag(&r.Loopback)
	c.flag(&r.CgroupNS)
	for _, v := range []*int64{&r.Bytes, &r.Landlock, &r.Seccomp, &r.TimerSlackNS} {
		c.number(v)
	}
	c.text(&r.Hostname)
	c.text(&r.Workspace)
	texts(c, &r.Masked)
	texts(c, &r.ReadOnly)
	texts(c, &r.Writable)
	list(c, &r.Mounts, func(c *codec, m *Mount) { m.visit(c) })
	list(c, &r.Links, func(c *codec, l *Link) { c.text(&l.Target); c.text(&l.Path) })
	list(c, &r.Files, func(c *codec, t *Text) { t.visit(c) })
	list(c, &r.Sysctls, func(c *codec, t *Text) { t.visit(c) })
	list(c, &r.Limits, func(c *codec, l *Rlimit) { c.number(&l.Resource); c.number(&l.Value) })
	list(c, &r.Addresses, func(c *codec, n *Network) { n.visit(c) })
	list(c, &r.Routes, func(c *codec, n *Network) { n.visit(c) })
	list(c, &r.Listen, func(c *codec, l *Listener) {
		c.flag(&l.Datagram)
		l.Address.visit(c)
		c.number(&l.Port)
	})
}

func (n *Network) visit(c *codec) {
	c.flag(&n.V6)
	c.number(&n.High)
	c.number(&n.Low)
	c.number(&n.Bits)
}

func (t *Text) visit(c *codec) {
	c.text(&t.Path)
	c.text(&t.Content)
	c.flag(&t.Private)
}

func (m *Mount) visit(c *codec) {
	for _, v := range []*int64{&m.Kind, &m.Bytes, &m.Inodes, &m.Mode, &m.OnDevice, &m.OnInode} {
		c.number(v)
	}
	for _, v := range []*bool{&m.Write, &m.NoExec, &m.Device, &m.Optional} {
		c.flag(v)
	}
	c.text(&m.Source)
	c.text(&m.Target)
}
