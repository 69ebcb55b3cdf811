// A launcher's life, from its birth (bear.c) to the end of its tree.
#include "launcher.h"
#include <asm/poll.h>
#include <asm/signal.h>
#include <linux/wait.h>

static struct options options;
static u64 deadline; // CLOCK_MONOTONIC, 0 is never

static void set_timer(i64 left) { deadline = left > 0 ? monotonic() + (u64)left : 0; }

// memory is taken before the tool starts, and never given back.
static void *memory(size_t n) {
	return (void *)must("read options", "", sys(__NR_mmap, NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// take reads a whole file of the host's, and closes it.
static u8 *take(int fd, size_t *size) {
	struct stat st;
	must("read options", "", sys(__NR_fstat, fd, &st));
	*size = (size_t)st.st_size;
	u8 *bytes = memory(*size + 1);
	for (size_t off = 0; off < *size;) {
		long n = sys(__NR_pread64, fd, bytes + off, *size - off, off);
		must("read options", "", n == 0 ? -EIO : n);
		off += (size_t)n;
	}
	shut(fd);
	return bytes;
}

static void take_options(void) {
	size_t size;
	u8 *bytes = take(SPEC_FD, &size);
	must("read options", "", read_options(&options, bytes, size) ? 0 : -EBADMSG);
}

static int extra_fd(void) { return FIRST_FD + options.kill; }

// lease_fd is the timer that others may share, or -1, which poll(2) passes over.
static int lease_fd(void) { return options.lease ? extra_fd() + (int)(options.extra + options.held) - 1 : -1; }

// keep_lease starts nothing once that is over.
static void keep_lease(void) {
	struct pollfd fd = {lease_fd(), POLLIN, 0};
	struct __kernel_timespec now = {0, 0};
	must("keep the lease", "", sys(__NR_ppoll, &fd, 1, &now, NULL, 0) == 0 ? 0 : -ETIME);
}

// await_tool waits for the call that this sandbox was made ahead of. Without a host or a
// lease none will come.
static void await_tool(void) {
	u8 kind;
	size_t size;
	struct packet p = {.bytes = &kind, .size = 1};
	struct pollfd fds[2] = {{CONTROL_FD, POLLIN, 0}, {lease_fd(), POLLIN, 0}};
	while (fds[0].revents == 0 && fds[1].revents == 0) {
		long n = sys(__NR_ppoll, fds, COUNT(fds), NULL, NULL, 0);
		if (n < 0 && n != -EINTR)
			leave(0);
	}
	if (fds[1].revents != 0 || receive(CONTROL_FD, &p) <= 0)
		leave(0);
	must("read options", "", kind == BEGIN && p.nfiles == 1 ? 0 : -EBADMSG);
	u8 *bytes = take(p.files[0], &size);
	must("read options", "", read_tool(&options.tool, bytes, size) ? 0 : -EBADMSG);
	set_timer(options.tool.timer);
}

// surround.

static void mount_plain(const char *step, const char *kind, const char *at, const char *data) {
	must(step, "", sys(__NR_mount, kind, at, kind, PLAIN_MOUNT | MS_NOEXEC, data));
}

static long open_folder(const char *step, const char *path) {
	return must(step, "", open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0));
}

// build_confined makes a world of its own for the tool.
static void build_confined(void) {
	const struct root *root = &options.root;
	network(root);
	// Only now is this process in its cgroup: clone(2) would have made the
	// forker's the root.
	if (root->cgroup_ns)
		must("unshare the cgroup namespace", "", sys(__NR_unshare, CLONE_NEWCGROUP));
	if (*root->hostname != 0)
		must("set the host name", "", sys(__NR_sethostname, root->hostname, length(root->hostname)));
	build_root(&options);
}

// surround makes what the tool finds around itself.
static void surround(void) {
	must("hide from the tool", "", sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
	must("read options", "", options.confine && !options.namespaced ? -EINVAL : 0);
	if (!options.namespaced) {
		must("adopt orphans", "", sys(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
		return;
	}
	must("make mounts private", "", sys(__NR_mount, "", "/", "", MS_REC | MS_PRIVATE, ""));
	if (options.confine) {
		build_confined();
		return;
	}
	if (options.proc)
		mount_plain("mount /proc", "proc", "/proc", "");
	// It holds one socket; its size keeps a tool from storing anything else there.
	if (*options.socket_dir != 0)
		mount_plain("mount the socket folder", "tmpfs", options.socket_dir, "mode=0700,size=64k,nr_inodes=16");
	// They brought the launcher here; the tool gets none.
	must("drop capabilities", "", sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
}

// report_ready gives the host the folders that it is to have.
static void report_ready(void) {
	u8 ready = READY;
	int fds[2], n = 0;
	if (*options.socket_dir != 0)
		fds[n++] = (int)open_folder("open the socket folder", options.socket_dir);
	if (options.confine && *options.root.workspace != 0)
		fds[n++] = (int)open_folder("open the workspace", options.root.workspace);
	must("report", "", send_with(CONTROL_FD, &ready, 1, fds, n));
	while (n > 0)
		shut(fds[--n]);
}

// The tool.

static const char **vector(const struct list *l) {
	const char **v = memory((l->n + 1) * sizeof *v);
	EACH(s, *l, text)
		v[s.i] = s.it;
	return v;
}

static i32 start_tool(void) {
	struct program tool = {
		.path = options.tool.path, .dir = options.tool.dir, .argv = vector(&options.tool.args), .envp = vector(&options.tool.env),
		.from = extra_fd(), .to = CONTROL_FD, .files = (int)options.extra,
	};
	block_signals(~0ULL); // nothing is to end this process while its memory is lent
	return (i32)must("execute", "", start_program(&tool));
}

// The guard.

// REAPED_AT_ONCE bounds how long a tool's dying processes can keep the guard
// from its other duties.
enum { REAPED_AT_ONCE = 64 };

static void report_exit(u32 status) {
	u8 message[9] = {EXITED};
	put_number(message + 1, status);
	sys(__NR_sendto, CONTROL_FD, message, sizeof message, NOSIGNAL, NULL, 0);
}

// reap waits for children, and says whether there may be more.
static bool reap(i32 *tool) {
	take_child_signal();
	for (int i = 0; i < REAPED_AT_ONCE; i++) {
		u32 status;
		i32 pid = (i32)sys(__NR_wait4, -1, &status, WNOHANG | __WALL, NULL);
		if (pid <= 0)
			return false;
		if (pid == *tool) {
			report_exit(status);
			*tool = -1; // another process may have its number one day
		}
	}
	return true;
}

// hear takes one message of the host's; false means end the tree.
static bool hear(void) {
	u8 message[MAX_MESSAGE];
	long n = sys(__NR_recvfrom, CONTROL_FD, message, sizeof message, DONTWAIT, NULL, NULL);
	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n == 9 && message[0] == TIMER)
		set_timer((i64)get_number(message + 1));
	return n > 0;
}

// watch waits for children, the host, the clock and the lease until one of the
// latter ends the tree.
static void watch(int children, i32 tool) {
	struct pollfd fds[3] = {{children, POLLIN, 0}, {CONTROL_FD, POLLIN, 0}, {lease_fd(), POLLIN, 0}};
	bool more = false;
	for (;;) {
		u64 now = deadline != 0 ? monotonic() : 0;
		if (deadline != 0 && now >= deadline)
			return;
		struct __kernel_timespec left = {0, 0};
		if (!more && deadline != 0)
			left = (struct __kernel_timespec){(i64)((deadline - now) / 1000000000), (i64)((deadline - now) % 1000000000)};
		long n = sys(__NR_ppoll, fds, COUNT(fds), more || deadline != 0 ? &left : NULL, NULL, 0);
		if (n < 0 && n != -EINTR)
			return;
		if (n > 0 && (fds[2].revents != 0 || (fds[1].revents != 0 && !hear())))
			return;
		if (more || (n > 0 && fds[0].revents != 0))
			more = reap(&tool);
	}
}

// end takes the tree down: as PID 1 by ending itself, which makes the kernel
// kill the namespace; otherwise through the group's cgroup.kill. Signalling
// every process (kill -1) would reach beyond the tree and is never done.
__attribute__((noreturn)) static void end(void) {
	if (options.kill)
		sys(__NR_write, FIRST_FD, "1", 1);
	leave(0);
}

// leave_to_tool leaves the tool the only holder of its pipes, so that the
// readers at their other ends see when it closes them.
static void leave_to_tool(void) {
	for (int fd = 0; fd < 3; fd++)
		shut(fd);
	for (int i = 0; i < (int)options.extra; i++)
		shut(extra_fd() + i);
}

void launch(void) {
	set_title("toolhost-launcher");
	must("close descriptors at exec", "", sys(__NR_close_range, CONTROL_FD, ~0U, CLOSE_RANGE_CLOEXEC));
	take_options();
	set_timer(options.tool.timer);
	surround();
	report_ready();
	int children = (int)must("watch children", "", child_signals());
	if (options.confine) {
		confine(&options.root);
		await_root();
	}
	if (options.waits)
		await_tool();
	keep_lease();
	i32 tool = start_tool();
	set_handlers(true); // a tool may send signals that end its launcher
	block_signals(SIGNAL_BIT(SIGCHLD));
	leave_to_tool();
	u8 started = STARTED;
	sys(__NR_sendto, CONTROL_FD, &started, 1, NOSIGNAL, NULL, 0);
	watch(children, tool);
	end();
}
