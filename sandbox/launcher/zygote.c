// The zygote gives birth to launchers until its host is gone. Its own thread
// never waits for anything but the next event: what may block (granted paths,
// cgroups, mounts) is done by a process of its own for each request (bear.c),
// whose launcher is nevertheless the zygote's child (CLONE_PARENT).
#include "launcher.h"
#include <asm/poll.h>
#include <asm/signal.h>
#include <linux/resource.h>
#include <linux/wait.h>

enum {
	MAX_CALLS = 16384,
	MAX_UNDER_WAY = 64, // requests; the next one waits in the socket
	MAX_ID_MAPS = 128,
	CLOSERS = 4,
};

// A call is remembered until its launcher is reaped, by the groups in which it
// is to be killed should the host die.
struct call {
	i32 bearer;   // process of the request, 0 when that has ended
	i32 launcher; // written by clone3(2) before the launcher runs; -1 when reaped
	i32 cgroup;   // the cgroup2 directory, or -1
	i32 mounts;   // the mount namespace, or -1
	i32 quota;    // cgroup v1's cpu.cfs_quota_us, or -1
	bool used, namespaced;
	bool lone; // its network may be one that was made ahead
};

struct id_map {
	i64 uid, gid, as_uid, as_gid;
	i32 users;
};

// What is known of calls is in memory that a request's process shares and a
// launcher does not have.
static struct {
	struct call calls[MAX_CALLS];
	int top; // no call is at or beyond it
	int under_way;
	struct id_map maps[MAX_ID_MAPS];
	int nmaps, next_map;
} *state;

// Descriptors from kept_fd on are kept; those below it come and go with requests.
enum { KEPT_FD = 320 };
static int kept_fd = KEPT_FD;

void close_kept(void) { close_beyond((unsigned)kept_fd); }

long forget_neighbours(void) { return sys(__NR_madvise, state, sizeof *state, MADV_DONTFORK); }

// A start is short and waited for. Where it may be, the zygote is ahead of its host's
// threads, of which many may run, as long as no launcher has begun.
enum { AHEAD = 10, NICEST = 20 };
static long usual_nice;

static void get_ahead(void) {
	usual_nice = NICEST - sys(__NR_getpriority, 0, 0); // the system call gives 20 less the nice value
	sys(__NR_setpriority, 0, 0, usual_nice - AHEAD);
}

void fall_back(void) { sys(__NR_setpriority, 0, 0, usual_nice); }

// tell_worn shows the host that this process has no descriptors left: another
// one is to give birth from now on, while this one keeps its launchers.
void tell_worn(void) { sys(__NR_shutdown, REQUEST_FD, 1); }

void refuse(int answer, const char *step, const char *what, long err) {
	if (err == -EMFILE || err == -ENFILE)
		tell_worn();
	send_failure(answer, step, what, err);
}

// keep moves a copy of a descriptor out of the way of requests.
static i32 keep(long fd) {
	if (fd < 0)
		return -1;
	long kept = sys(__NR_fcntl, fd, F_DUPFD_CLOEXEC, kept_fd);
	if (kept == -EMFILE || kept == -EINVAL) // the latter where kept_fd is beyond the limit
		tell_worn();
	return kept < 0 ? -1 : (i32)kept;
}

i32 keep_only(long fd) {
	i32 kept = keep(fd);
	if (fd >= 0)
		shut(fd);
	return kept;
}

bool kept_pipe(int ends[2]) {
	int fds[2];
	if (sys(__NR_pipe2, fds, O_CLOEXEC) < 0)
		return false;
	for (int i = 0; i < 2; i++)
		ends[i] = keep_only(fds[i]);
	return ends[0] >= 0 && ends[1] >= 0;
}

// The last holder of a mount namespace waits, as it lets go of it, for a grace
// period of all processors (namespace_unlock in fs/namespace.c): that shall be
// neither a launcher, whose end is waited for, nor the zygote. Closers wait side
// by side, for grace periods are shared.
static int to_close[2] = {-1, -1};
static u8 closer_stacks[CLOSERS][2048] __attribute__((aligned(16)));

static void close_slowly(void *unused) {
	(void)unused;
	i32 fd;
	while (sys(__NR_read, to_close[0], &fd, sizeof fd) == sizeof fd)
		shut(fd);
	for (;;)
		sys(__NR_exit, 0);
}

static void start_closers(void) {
	int started = 0;
	if (to_close[0] >= 0)
		return;
	bool piped = kept_pipe(to_close);
	sys(__NR_fcntl, to_close[1], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < CLOSERS && piped; i++)
		started += spawn_thread(closer_stacks[i] + sizeof *closer_stacks, close_slowly) > 0;
	if (started > 0)
		return;
	for (int i = 0; i < 2; i++) { // the next call tries again
		if (to_close[i] >= 0)
			shut(to_close[i]);
		to_close[i] = -1;
	}
}

static void close_later(i32 fd) {
	if (fd >= 0 && sys(__NR_write, to_close[1], &fd, sizeof fd) != sizeof fd)
		shut(fd);
}

static void forget(struct call *c) {
	for (const i32 *fd = (const i32[]){c->cgroup, c->quota, -2}; *fd != -2; fd++)
		if (*fd >= 0)
			shut(*fd);
	close_later(c->mounts);
	c->used = false;
	while (state->top > 0 && !state->calls[state->top - 1].used)
		state->top--;
}

static i32 mounts_of(i32 pid) {
	char path[64];
	struct line l = LINE(path);
	add_path(&l, "/proc/", (u64)pid, "/ns/mnt");
	return keep_only(open_at(AT_FDCWD, path, O_RDONLY, 0)); // without it, its end takes longer
}

// bearer_ended: what the request has led to is now known.
static void bearer_ended(struct call *c) {
	state->under_way--;
	c->bearer = 0;
	if (c->launcher <= 0)
		forget(c);
	else if (c->namespaced)
		c->mounts = mounts_of(c->launcher);
}

static void launcher_ended(struct call *c) {
	c->launcher = -1;
	if (c->lone)
		net_used();
	if (c->bearer == 0)
		forget(c);
}

// reap takes the statuses of what has ended; the host watches by pidfd.
static void reap(void) {
	take_child_signal();
	for (;;) {
		i32 pid = (i32)sys(__NR_wait4, -1, NULL, WNOHANG | __WALL, NULL);
		if (pid == -EINTR)
			continue;
		if (pid <= 0)
			return;
		for (struct call *c = state->calls; c < state->calls + state->top; c++)
			if (c->used && c->bearer == pid)
				bearer_ended(c);
			else if (c->used && c->launcher == pid)
				launcher_ended(c);
	}
}

// end_all kills what lives, when the host has died. The launchers would end it
// too, but under their tool's own CPU quota: that is lifted here first.
static void end_all(void) {
	for (struct call *c = state->calls; c < state->calls + state->top; c++) {
		if (!c->used)
			continue;
		if (c->quota >= 0)
			sys(__NR_write, c->quota, "-1", 2);
		if (c->cgroup >= 0) {
			overwrite(c->cgroup, "cpu.max", "max");
			overwrite(c->cgroup, "cgroup.kill", "1");
		}
	}
}

__attribute__((noreturn)) static void host_ended(void) {
	end_all();
	leave(0);
}

// quota_of opens the limit that may hold up the end of a group, given by its
// `tasks`, where that is one of cgroup v1's controller cpu.
static i32 quota_of(const int *tasks, int n) {
	for (int i = 0; i < n; i++) {
		char self[64], path[MAX_PATH];
		struct line l = LINE(self);
		add_path(&l, "/proc/self/fd/", (u64)tasks[i], "");
		long size = sys(__NR_readlinkat, AT_FDCWD, self, path, sizeof path - 1);
		if (size < 5)
			continue;
		path[size - 5] = 0; // without "tasks"
		struct line file = {.at = path, .size = sizeof path, .used = (size_t)size - 5};
		add(&file, "cpu.cfs_quota_us");
		long fd = open_at(AT_FDCWD, path, O_WRONLY, 0);
		if (fd >= 0)
			return keep_only(fd);
	}
	return -1;
}

// hold_users is the life of a process that only holds a user namespace: it hands it over
// by itself, for who opens it from outside may have to be a tracer (namespaces(7)). It ends
// with the zygote, if that does not end it before.
__attribute__((noreturn)) static void hold_users(int to) {
	int own = (int)open_at(AT_FDCWD, "/proc/self/ns/user", O_RDONLY, 0);
	u8 ready = READY;
	send_with(to, &ready, 1, &own, own >= 0);
	struct pollfd zygote = {.fd = to};
	while (!(zygote.revents & POLLHUP))
		sys(__NR_ppoll, &zygote, 1, NULL, NULL, 0);
	leave(0);
}

// take_users waits for what hold_users hands over, or for its end.
static long take_users(int from) {
	u8 ready;
	struct packet p = {.bytes = &ready, .size = 1};
	struct pollfd fd = {.fd = from, .events = POLLIN};
	long err = sys(__NR_ppoll, &fd, 1, NULL, NULL, 0);
	if (err >= 0)
		err = receive(from, &p);
	if (err < 0)
		return err;
	return p.nfiles == 1 ? p.files[0] : -EACCES;
}

// new_users makes a user namespace that says m.
static i32 new_users(const struct id_map *m) {
	enum { UNIX = 1, SEQPACKET = 5 };
	i32 pidfd = -1;
	int ends[2];
	struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_PIDFD, .pidfd = (u64)&pidfd, .exit_signal = SIGCHLD};
	long err = sys(__NR_socketpair, UNIX, SEQPACKET | O_CLOEXEC, 0, ends);
	if (err < 0)
		return (i32)err;
	long pid = sys(__NR_clone3, &args, sizeof args);
	if (pid == 0) {
		shut(ends[0]); // or the zygote's end would not be seen
		hold_users(ends[1]);
	}
	shut(ends[1]);
	if (pid < 0) {
		shut(ends[0]);
		return (i32)pid;
	}
	long users = take_users(ends[0]);
	err = users < 0 ? users : write_maps((int)pid, pidfd, m->uid, m->as_uid, m->gid, m->as_gid);
	sys(__NR_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	shut(pidfd);
	shut(ends[0]);
	i32 kept = keep_only(users);
	if (err < 0) {
		if (kept >= 0)
			shut(kept);
		return (i32)err;
	}
	return kept < 0 ? -EMFILE : kept;
}

// users_for returns a descriptor, for this request alone, of the user namespace
// that makes s's files appear as the call's own (mount_setattr(2)). Namespaces
// stay for the next call of the same slot.
static int users_for(const struct stage *s, const struct birth *b) {
	struct id_map want = {.uid = s->uid, .gid = s->gid, .as_uid = b->uid, .as_gid = b->gid};
	struct id_map *m = state->maps;
	while (m < state->maps + state->nmaps && (m->uid != want.uid || m->gid != want.gid || m->as_uid != want.as_uid || m->as_gid != want.as_gid))
		m++;
	if (m == state->maps + state->nmaps) {
		want.users = new_users(&want);
		if (want.users < 0)
			return want.users;
		m = &state->maps[state->next_map];
		state->next_map = (state->next_map + 1) % MAX_ID_MAPS;
		if (state->nmaps == MAX_ID_MAPS)
			shut(m->users);
		else
			state->nmaps++;
		*m = want;
	}
	return (int)sys(__NR_fcntl, m->users, F_DUPFD_CLOEXEC, 0);
}

static struct call *free_call(void) {
	for (int i = 0; i < MAX_CALLS; i++) {
		struct call *c = &state->calls[i];
		if (c->used)
			continue;
		*c = (struct call){.cgroup = -1, .mounts = -1, .quota = -1, .used = true};
		if (i >= state->top)
			state->top = i + 1;
		return c;
	}
	return NULL;
}

// begin_child forks the process of a request; 0 is returned in it.
static long begin_child(struct call *c) {
	long pid = sys(__NR_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid > 0) {
		c->bearer = (i32)pid;
		state->under_way++;
	} else if (pid < 0) {
		forget(c);
	}
	return pid;
}

// need_users has the id map of q's trees at hand. There is one: they act as the
// same user.
static bool need_users(struct request *q) {
	struct stage first = {.map = false};
	q->users = -1;
	EACH(s, q->b.stage, read_stage) {
		if (!s.it.map)
			continue;
		long err = 0;
		if (!first.map)
			err = q->users = users_for(&s.it, &q->b);
		else if (s.it.uid != first.uid || s.it.gid != first.gid)
			err = -EINVAL;
		if (err < 0) {
			refuse(q->control, "map the owner of ", s.it.source, err);
			return false;
		}
		first = s.it;
	}
	return true;
}

static void serve_birth(struct packet *p, size_t n) {
	static struct request q;
	if (!read_birth(&q.b, p->bytes + 1, n - 1) || !sort_files(&q, p))
		return;
	q.net = -1;
	if (need_users(&q)) {
		struct call *c = free_call();
		q.net = q.b.lone ? take_net() : -1;
		long pid = c == NULL ? -EAGAIN : begin_child(c);
		if (pid == 0)
			bear(&q, &c->launcher);
		if (pid < 0) {
			refuse(q.control, "clone", "", pid);
		} else {
			c->namespaced = (q.b.flags & CLONE_NEWNS) != 0;
			c->lone = q.b.lone;
			c->cgroup = keep(q.cgroup);
			c->quota = quota_of(q.enter, (int)q.b.enter);
			if (c->namespaced)
				start_closers();
			if (c->lone)
				start_maker();
		}
	}
	if (q.users >= 0)
		shut(q.users);
	if (q.net >= 0)
		shut(q.net);
	wipe(&q, sizeof q);
}

static void serve_connect(struct packet *p, size_t n) {
	struct call *c = p->nfiles == 2 ? free_call() : NULL;
	p->bytes[n] = 0; // there is one byte more than a message can have
	if (c != NULL && begin_child(c) == 0)
		connect_for_host((const char *)p->bytes + 1, p);
}

// spare makes sure that a descriptor is left: that of an answer would be closed
// before it could be used.
static void spare(void) {
	long fd = sys(__NR_fcntl, REQUEST_FD, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		tell_worn();
	else
		shut(fd);
}

static void serve(void) {
	static u8 bytes[MAX_BIRTH + 1];
	static struct packet p;
	p = (struct packet){.bytes = bytes, .size = MAX_BIRTH};
	spare();
	long n = receive(REQUEST_FD, &p);
	if (n == -EINTR || n == -EAGAIN)
		return;
	if (n <= 0)
		host_ended();
	if (p.cut || (p.nfiles > 0 && p.files[p.nfiles - 1] >= kept_fd)) { // there were no descriptors left for its files
		tell_worn();
		if (p.nfiles > 0)
			send_failure(p.files[0], "take the files of a call", "", -EMFILE);
	} else if (bytes[0] == REQUEST_BIRTH) {
		serve_birth(&p, (size_t)n);
	} else if (bytes[0] == REQUEST_CONNECT) {
		serve_connect(&p, (size_t)n);
	}
	for (int i = 0; i < p.nfiles; i++)
		shut(p.files[i]);
	wipe(bytes, (size_t)n + 1);
	wipe(&p, sizeof p);
}

// answer_ping sends back what the host asks to know whether this process still
// runs.
static bool answer_ping(void) {
	u8 buf[16];
	long n = sys(__NR_recvfrom, PULSE_FD, buf, sizeof buf, DONTWAIT, NULL, NULL);
	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n <= 0)
		return false; // the host's end is seen at the other socket
	sys(__NR_sendto, PULSE_FD, buf, n, NOSIGNAL | DONTWAIT, NULL, 0);
	return true;
}

// halve_descriptors leaves requests at most half of a small limit.
static void halve_descriptors(void) {
	u64 limit[2];
	if (sys(__NR_prlimit64, 0, RLIMIT_NOFILE, NULL, limit) >= 0 && limit[0] / 2 < KEPT_FD)
		kept_fd = (int)(limit[0] / 2);
}

// map_and_execute waits until the host has mapped users into this process's user
// namespace, and makes it that namespace's root by executing it again.
__attribute__((noreturn)) static void map_and_execute(char **argv, char **envp) {
	u8 go;
	if (sys(__NR_read, REQUEST_FD, &go, 1) != 1)
		leave(0);
	sys(__NR_mount, "", "/", "", MS_REC | MS_SLAVE, "");
	argv[2] = NULL;
	sys(__NR_execve, "/proc/self/fd/4", argv, envp);
	leave(EXIT_SETUP);
}

void zygote(bool await_map, char **argv, char **envp) {
	if (await_map)
		map_and_execute(argv, envp);
	// Not before: only of a dumpable process may the host write the maps.
	long hidden = sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	shut(IMAGE_FD);
	set_handlers(false);
	block_signals(SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGPIPE));
	halve_descriptors();
	long memory = sys(__NR_mmap, NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	i32 children = keep_only(child_signals());
	if (hidden < 0 || sys(__NR_close_range, REQUEST_FD, ~0U, CLOSE_RANGE_CLOEXEC) < 0 || (memory < 0 && memory > -MAX_PATH) || children < 0)
		leave(EXIT_SETUP);
	state = (void *)memory;
	set_title("toolhost-zygote");
	get_ahead();
	struct pollfd fds[3] = {{children, POLLIN, 0}, {PULSE_FD, POLLIN, 0}, {REQUEST_FD, POLLIN, 0}};
	for (;;) {
		fds[2].events = state->under_way < MAX_UNDER_WAY ? POLLIN : 0; // its end is seen all the same
		sys(__NR_ppoll, fds, 3, NULL, NULL, 0);
		if (fds[0].revents != 0)
			reap();
		if (fds[1].revents != 0 && !answer_ping())
			fds[1].fd = -1;
		if (fds[2].revents & POLLIN)
			serve();
		else if (fds[2].revents != 0)
			host_ended();
	}
}
