// The process of one request: it takes a launcher's trees, enters its groups,
// and clones it.
#include "launcher.h"
#include <asm/signal.h>
#include <linux/resource.h>

// BEAR_TIME bounds a birth, in seconds: a granted path may be on a file system
// that does not answer.
enum { BEAR_TIME = 30 };

bool sort_files(struct request *q, const struct packet *p) {
	const int *fds = p->files, *end = fds + p->nfiles;
	if (end - fds < 1 + q->b.cgroup + q->b.enter + (i64)q->b.stage.n + SPEC_FD + 1)
		return false;
	q->control = *fds++;
	q->cgroup = q->b.cgroup ? *fds++ : -1;
	q->enter = fds;
	q->sources = fds += q->b.enter;
	q->files = fds += q->b.stage.n;
	q->nfiles = (int)(end - fds);
	return true;
}

void begin_request(void) {
	struct __kernel_old_itimerval alarm = {.it_value = {.tv_sec = BEAR_TIME}};
	sys(__NR_setitimer, 0, &alarm, NULL);
	close_kept(); // or what other calls have would stay with this one
}

__attribute__((noreturn)) static void give_up(const struct request *q, const char *step, const char *what, long err) {
	refuse(q->control, step, what, err);
	leave(EXIT_SETUP);
}

// stage_all clones the trees that the launcher, as the user that it becomes,
// could not reach. They are detached: no mount of this machine changes.
static void stage_all(const struct request *q, int *trees) {
	EACH(s, q->b.stage, read_stage) {
		const char *step = "";
		long tree = stage(&s.it, q->sources[s.i], q->users, &step);
		if (tree < 0)
			give_up(q, step, s.it.source, tree);
		trees[s.i] = (int)tree;
	}
}

// enter_groups moves this process into the call's cgroup v1 groups, so that what
// it clones is born there: one write for each hierarchy and no wait for a grace
// period, as moving another process costs.
static void enter_groups(const struct request *q) {
	for (i64 i = 0; i < q->b.enter; i++) {
		long n = sys(__NR_write, q->enter[i], "0", 1);
		if (n < 0)
			give_up(q, "clone", "", n);
	}
}

// unprotect takes from a tool what protection from the OOM killer its host has, where
// that may be: before a tool that has run wild the kernel would kill all others.
static void unprotect(void) {
	char score[8];
	long fd = open_at(AT_FDCWD, "/proc/self/oom_score_adj", O_RDWR, 0);
	if (fd >= 0 && sys(__NR_read, fd, score, sizeof score) > 0 && *score == '-')
		sys(__NR_write, fd, "0", 1);
	shut(fd);
}

// arrange makes fds this process's descriptors 0 to n-1, and closes all others.
static long arrange(int *fds, int n) {
	for (int i = 0; i < n; i++) {
		if (fds[i] == i)
			continue;
		for (int j = i + 1; j < n; j++) {
			if (fds[j] != i)
				continue;
			long away = sys(__NR_fcntl, i, F_DUPFD, n);
			if (away < 0)
				return away;
			fds[j] = (int)away;
		}
		long err = sys(__NR_dup3, fds[i], i, 0);
		if (err < 0)
			return err;
	}
	return close_beyond((unsigned)n);
}

// become makes this process the user that its namespace maps, with what building
// a sandbox takes and no more. It is all dropped before the tool starts.
static long become(const struct birth *b) {
	if (!b->user)
		return 0;
	const u64 kept = 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SETPCAP | 1ULL << CAP_NET_ADMIN | 1ULL << CAP_SYS_RESOURCE | 1ULL << CAP_NET_BIND_SERVICE;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {
		{.effective = (u32)kept, .permitted = (u32)kept},
		{.effective = (u32)(kept >> 32), .permitted = (u32)(kept >> 32)},
	};
	long err = sys(__NR_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0);
	if (err >= 0)
		err = sys(__NR_setresgid, b->inside_gid, b->inside_gid, b->inside_gid);
	if (err >= 0)
		err = sys(__NR_setresuid, b->inside_uid, b->inside_uid, b->inside_uid);
	return err < 0 ? err : sys(__NR_capset, &header, caps);
}

// begin_launch is where a launcher's life begins. It waits until it is mapped
// and known to the host.
__attribute__((noreturn)) static void begin_launch(const struct request *q, const int *trees, int ready) {
	int fds[2 * MAX_FILES + 1];
	int n = 0;
	for (int i = 0; i < q->nfiles; i++)
		fds[n++] = q->files[i];
	for (u64 i = 0; i < q->b.stage.n; i++)
		fds[n++] = trees[i];
	fds[n] = ready;
	u8 go;
	if (arrange(fds, n + 1) < 0 || sys(__NR_read, n, &go, 1) != 1)
		leave(EXIT_SETUP);
	shut(n);
	fall_back();
	sys(__NR_setsid);
	must("clone", "", sys(__NR_chdir, "/"));
	must("clone", "", become(&q->b));
	launch();
}

static long write_map(int proc, const char *name, i64 inside, i64 outside) {
	char map[64];
	struct line l = LINE(map);
	add_number(&l, (u64)inside, 10);
	add(&l, " ");
	add_number(&l, (u64)outside, 10);
	add(&l, " 1\n");
	return overwrite(proc, name, map);
}

long write_maps(int pid, int pidfd, i64 inside_uid, i64 uid, i64 inside_gid, i64 gid) {
	char path[32];
	struct line l = LINE(path);
	add_path(&l, "/proc/", (u64)pid, "");
	long proc = open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (proc < 0)
		return proc;
	// It is that process's folder if that lives now, and never another's.
	long err = sys(__NR_pidfd_send_signal, pidfd, 0, NULL, 0);
	if (err >= 0)
		err = write_map((int)proc, "uid_map", inside_uid, uid);
	if (err >= 0)
		err = overwrite((int)proc, "setgroups", "deny");
	if (err >= 0)
		err = write_map((int)proc, "gid_map", inside_gid, gid);
	shut(proc);
	return err;
}

static long announce(const struct request *q, long pid, int pidfd) {
	u8 message[9] = {BORN};
	put_number(message + 1, (u64)pid);
	long err = q->b.user ? write_maps((int)pid, pidfd, q->b.inside_uid, q->b.uid, q->b.inside_gid, q->b.gid) : 0;
	return err < 0 ? err : send_with(q->control, message, sizeof message, &pidfd, 1);
}

void bear(struct request *q, i32 *born) {
	int trees[MAX_FILES], ready[2], pidfd = -1;
	if (enter_net(q->net))
		q->b.flags &= ~CLONE_NEWNET;
	begin_request();
	long err = q->b.drop_groups ? sys(__NR_setgroups, 0, NULL) : 0;
	if (err < 0 && err != -EPERM) // that is a namespace which has denied it
		give_up(q, "clone", "", err);
	stage_all(q, trees);
	err = sys(__NR_pipe2, ready, O_CLOEXEC);
	if (err >= 0)
		err = forget_neighbours();
	if (err < 0)
		give_up(q, "clone", "", err);
	unprotect();
	enter_groups(q);
	struct clone_args args = {
		.flags = (u64)q->b.flags | CLONE_PARENT | CLONE_PIDFD | CLONE_PARENT_SETTID, .pidfd = (u64)&pidfd, .parent_tid = (u64)born,
	};
	if (q->b.user)
		args.flags |= CLONE_NEWUSER;
	if (q->cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (u64)q->cgroup;
	}
	long pid = sys(__NR_clone3, &args, sizeof args);
	if (pid == 0)
		begin_launch(q, trees, ready[0]);
	if (pid < 0)
		give_up(q, "clone", "", pid);
	err = announce(q, pid, pidfd);
	if (err < 0) { // nobody else can end it
		sys(__NR_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		give_up(q, "clone", "", err);
	}
	sys(__NR_write, ready[1], "", 1);
	leave(0);
}
