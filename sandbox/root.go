package sandbox

import "github.com/toolhost/toolhost/sandbox/internal/wire"

// rootBytes bounds the root's own tmpfs: folders, links and small files.
const rootBytes = 1 << 20

// devices are the only ones that a call sees.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Docker masks and write-protects most of these (its default OCI spec); the
// rest reveals the host and is useless to a tool.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/bootconfig", "/proc/buddyinfo", "/proc/bus", "/proc/cmdline", "/proc/config.gz",
		"/proc/diskstats", "/proc/driver", "/proc/dynamic_debug", "/proc/fs", "/proc/interrupts", "/proc/iomem", "/proc/ioports",
		"/proc/irq", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg", "/proc/kpagecgroup",
		"/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/mdstat", "/proc/modules", "/proc/mtrr",
		"/proc/pagetypeinfo", "/proc/partitions", "/proc/pressure", "/proc/sched_debug", "/proc/schedstat", "/proc/scsi",
		"/proc/slabinfo", "/proc/softirqs", "/proc/swaps", "/proc/sysrq-trigger", "/proc/timer_list", "/proc/timer_stats",
		"/proc/tty", "/proc/vmallocinfo", "/proc/vmcore", "/proc/vmstat", "/proc/zoneinfo",
	}
	readOnlyPaths = []string{"/proc/sys"}
)

// namespaceLimits bound what a call can have of things that count for the
// caller's user too (user_namespaces(7), /proc/sys/user), and of namespaces.
var namespaceLimits = []wire.Text{
	{Path: "/proc/sys/user/max_inotify_instances", Content: "16"},
	{Path: "/proc/sys/user/max_inotify_watches", Content: "8192"},
	{Path: "/proc/sys/user/max_user_namespaces", Content: "0"},
	{Path: "/proc/sys/user/max_fanotify_groups", Content: "0"},
}

// texts are the synthetic files of a call without the host's network.
var texts = []wire.Text{
	{Path: "/etc/passwd", Content: "root:x:0:0:root:/:/usr/sbin/nologin\ntool:x:1000:1000:tool:/workspace:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
	{Path: "/etc/group", Content: "root:x:0:\ntool:x:1000:\nnogroup:x:65534:\n"},
	{Path: "/etc/nsswitch.conf", Content: "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
	{Path: "/etc/hostname", Content: hostname + "\n"},
}

const ownHosts = "127.0.0.1 localhost " + hostname + "\n::1 localhost ip6-localhost ip6-loopback\n"

// networkFiles are the host's where its network is granted.
var networkFiles = []string{"/etc/hosts", "/etc/resolv.conf", "/etc/gai.conf"}

// addMounts fills the root: what is everybody's first, then the call's own, then
// what it was granted, and its programs on top of that.
func (p *Plan) addMounts(r Resolved, f Features, t Task, s Storage) {
	p.add(f.layout)
	for _, path := range devices {
		p.mount(wire.Mount{Source: path, Target: path, NoExec: true, Device: true})
	}
	for _, l := range []link{{"/proc/self/fd", "/dev/fd"}, {"fd/0", "/dev/stdin"}, {"fd/1", "/dev/stdout"}, {"fd/2", "/dev/stderr"}} {
		p.root.Links = append(p.root.Links, wire.Link{Target: l.target, Path: l.path})
	}
	p.root.Files = append(p.root.Files, texts...)
	p.network(r)
	p.mount(wire.Mount{Kind: wire.MountProc, Target: "/proc", NoExec: true})
	p.root.Sysctls = namespaceLimits
	p.tmpfs("/tmp", 0o1777, s.TmpBytes, s.WorkspaceInodes/4, false)
	p.tmpfs("/dev/shm", 0o1777, s.ShmBytes, s.WorkspaceInodes/64, true)
	// Queues are made by mq_open(3) alone, which Landlock refuses unless a path leads to them that may be written.
	p.mount(wire.Mount{Kind: wire.MountMqueue, Target: "/dev/mqueue", NoExec: true, Optional: true})
	p.workspace(r, f, s)
	// One socket and nothing else: an inode for it and one for the folder.
	p.tmpfs(socketDir, 0o700, 64<<10, 2, true)
	p.root.Writable = append(p.root.Writable, devices...)
	p.root.Writable = append(p.root.Writable, "/proc", "/tmp", "/dev/shm", "/dev/mqueue", Workspace, socketDir)
	for _, g := range r.place(f.layout) {
		p.lend(wire.Stage{Source: g.source, Write: g.write}, f, g.at)
		p.maskIn(r, g)
		if g.write {
			p.root.Writable = append(p.root.Writable, g.at)
		}
	}
	for _, program := range t.Programs {
		p.stageTree(wire.Stage{Source: program.Source}, withoutLinks(program.Target))
	}
}

// workspace is the call's own and handed over after it, or a folder that stays.
func (p *Plan) workspace(r Resolved, f Features, s Storage) {
	if r.workspace != "" {
		p.storage.WorkspaceBytes, p.storage.WorkspaceInodes = 0, 0
		p.lend(wire.Stage{Source: r.workspace, Write: true, Own: true}, f, Workspace)
		p.maskIn(r, placed{grant{target: Workspace}, Workspace})
		return
	}
	p.tmpfs(Workspace, 0o755, s.WorkspaceBytes, s.WorkspaceInodes, false)
	p.root.Workspace = Workspace
}

// lend stages a tree on which the call acts as the caller.
func (p *Plan) lend(s wire.Stage, f Features, target string) {
	s.Map, s.MapUID, s.MapGID = f.root, int64(f.caller[0]), int64(f.caller[1])
	p.stageTree(s, target)
}

func (p *Plan) add(l layout) {
	for _, link := range l.links {
		p.root.Links = append(p.root.Links, wire.Link{Target: link.target, Path: link.path})
	}
	for _, path := range l.binds {
		p.mount(wire.Mount{Source: path, Target: path})
	}
}

func (p *Plan) network(r Resolved) {
	if r.policy.network() != NetworkHost {
		p.root.Files = append(p.root.Files, wire.Text{Path: "/etc/hosts", Content: ownHosts})
		return
	}
	for _, path := range networkFiles {
		p.mount(wire.Mount{Source: path, Target: path, NoExec: true, Optional: true})
	}
}

func (p *Plan) mount(m wire.Mount) { p.root.Mounts = append(p.root.Mounts, m) }

func (p *Plan) tmpfs(target string, mode, bytes, inodes int64, noexec bool) {
	p.mount(wire.Mount{Kind: wire.MountTmpfs, Target: target, Mode: mode, Bytes: bytes, Inodes: max(inodes, 2), Write: true, NoExec: noexec})
}

func (p *Plan) stageTree(s wire.Stage, target string) {
	p.stage = append(p.stage, s)
	p.mount(wire.Mount{Kind: wire.MountStaged, Source: s.Source, Target: target, Write: s.Write})
}
