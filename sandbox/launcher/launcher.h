// The launcher's parts. See main.c for what the program is.
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include "wire.h"
#include <asm/stat.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/time.h>

// EXIT_SETUP is the exit status after a failed set-up; the host knows the
// reason from the control socket.
enum { EXIT_SETUP = 70, MAX_PATH = 4096 + 64 };

#define PLAIN_MOUNT (MS_NOSUID | MS_NODEV)

int program(int argc, char **argv, char **envp);

// text.c: files, clocks, signals.

// is_kind and is_folder say what a file is, by its mode.
static inline bool is_kind(const struct stat *st, unsigned kind) { return (st->st_mode & 0170000) == kind; }
static inline bool is_folder(const struct stat *st) { return is_kind(st, 0040000); }

static inline long open_at(int dir, const char *path, int flags, int mode) {
	return sys(__NR_openat, dir, path, flags | O_CLOEXEC, mode);
}

static inline void shut(long fd) { sys(__NR_close, fd); }

// overwrite writes a file that is there; the result is the error, or 0.
long overwrite(int dir, const char *path, const char *content);

// close_beyond closes the descriptors from first on.
static inline long close_beyond(unsigned first) { return sys(__NR_close_range, first, ~0U, 0); }

u64 monotonic(void); // CLOCK_MONOTONIC, in nanoseconds

// program.c

// A program is what a child is to become: argv and envp as in execve(2), dir or
// NULL, and files descriptors from `from` on, which it has from `to` on; where
// they overlap, `to` is below `from`.
struct program {
	const char *path, *dir;
	const char *const *argv, *const *envp;
	int from, to, files;
	void (*before)(void); // or NULL: what the child does to itself at last
	long err;
};

// start_program returns the child's process id once it has become the program, or
// an error: then there is no child. Signals that are ignored here are ignored there.
long start_program(struct program *p);
// spawn_thread starts a thread on a stack that ends at stack.
long spawn_thread(void *stack, void (*run)(void *));

// message.c: messages with descriptors.

// Flags of send(2) and recv(2).
enum { DONTWAIT = 0x40, NOSIGNAL = 0x4000 };

struct packet {
	u8 *bytes;
	size_t size; // of bytes
	int files[MAX_FILES + 3];
	int nfiles;
	bool cut; // it, or a descriptor, did not fit
};

// receive returns the message's length, 0 at the end of the socket.
long receive(int fd, struct packet *p);
// send_with never waits for longer than it takes the other side to read.
long send_with(int fd, const void *bytes, size_t n, const int *files, int nfiles);
// send_failure says which step failed; what is appended to its name, or "".
void send_failure(int control, const char *step, const char *what, long err);

// must ends a launcher with a report where err is an error, and returns it. The
// host takes the end of the socket without a report for nothing but a crash.
long must(const char *step, const char *what, long err);

enum { SIGNALS = 64 };

void block_signals(u64 blocked);
void set_handlers(bool ignore); // of all signals, SIGCHLD excepted
long child_signals(void);       // a descriptor that is readable when a child has ended
void take_child_signal(void);

#define SIGNAL_BIT(n) (1ULL << ((n)-1))

// zygote.c

enum { REQUEST_FD = 3, IMAGE_FD = 4, PULSE_FD = 5 };

__attribute__((noreturn)) void zygote(bool await_map, char **argv, char **envp);
void tell_worn(void);
void refuse(int answer, const char *step, const char *what, long err);
// close_kept closes this process's copies of what the zygote keeps, and
// forget_neighbours has the next clone know nothing of other calls.
void close_kept(void);
long forget_neighbours(void);
void fall_back(void);
// keep_only moves a descriptor out of the way of requests; kept_pipe makes a pipe there.
i32 keep_only(long fd);
bool kept_pipe(int ends[2]);

// ahead.c

void start_maker(void); // once
// net_used: a call with a network of lo alone has ended. The next may have one that is
// made now.
void net_used(void);
i32 take_net(void); // or -1
// enter_net is for a request's process, whose launcher then finds net_is_ready.
bool enter_net(i32 net);
bool net_is_ready(void);

// bear.c

// A request for a birth, with its files told apart.
struct request {
	struct birth b;
	int control, cgroup; // cgroup is -1 without one
	const int *enter, *sources, *files;
	int nfiles;
	int users; // the user namespace of the id map of b.stage, or -1
	int net;   // a network that was made ahead, or -1
};

// sort_files returns false where there are not as many files as must come.
bool sort_files(struct request *q, const struct packet *p);
// bear gives birth to a launcher, writes its process id to born, and ends.
__attribute__((noreturn)) void bear(struct request *q, i32 *born);
// begin_request bounds the time of a request's process, and closes what is other
// calls'.
void begin_request(void);
__attribute__((noreturn)) void connect_for_host(const char *name, const struct packet *p);
// write_maps maps one user of a process's new user namespace.
long write_maps(int pid, int pidfd, i64 inside_uid, i64 uid, i64 inside_gid, i64 gid);

// stage.c

// stage clones a tree, and returns its descriptor, or an error of *step.
long stage(const struct stage *s, int source, int users, const char **step);

// launch.c

__attribute__((noreturn)) void launch(void);
// set_title is what ps(1) shows of this process.
void set_title(const char *title);

// root.c, confine.c, trial.c

void build_root(const struct options *o);
// await_root waits until nothing but the new root is left.
void await_root(void);
void confine(const struct root *root);
int trial(char **paths);

// network.c

long loopback(void);
// network arranges the namespace, and hands its sockets to the host.
void network(const struct root *root);

// command.c

int command_adapter(char **argv, char **envp);

#endif
