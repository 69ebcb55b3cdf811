// The command adapter runs one plain command as a tool. It is a go-plugin child
// as every tool is: it prints the handshake's line, and serves gRPC over HTTP/2
// (RFC 9113) to the one connection that it accepts, before which the command does
// not exist; so it reads what the host sends and nothing else. The command's
// bytes never pass through it: it inherits pipes that the host has made.
//
// The host is told the bare facts, and words them: an exit status or a signal's
// number, or the error number of what could not be started.
#include "http2.h"
#include "launcher.h"
#include <asm/poll.h>
#include <asm/signal.h>
#include <linux/landlock.h>
#include <linux/signalfd.h>
#include <linux/socket.h>
#include <linux/un.h>
#include <linux/wait.h>

// The command's stdin, stdout and stderr, as the supervisor hands them over.
enum { COMMAND_STDIN = 3 };

// Kinds of toolhost.plugin.v1's ToolError.
enum { CANCELLED = 3, NOT_FOUND = 5, NOT_EXECUTABLE = 6 };

static char **command, **environment;
static int signals_fd;
static i32 child; // its process id, 0 before and after
static u32 call; // the stream of the call, 0 without one
static bool called, stopped;

// Messages (proto/v1/plugin.proto): each is far below 128 bytes, so that a length
// is one byte.

static size_t put_field(u8 *to, unsigned number_, const void *bytes, size_t n) {
	to[0] = (u8)(number_ << 3 | 2);
	to[1] = (u8)n;
	memcpy(to + 2, bytes, n);
	return n + 2;
}

static size_t put_varint(u8 *to, unsigned number_, u32 v) {
	size_t n = 0;
	to[n++] = (u8)(number_ << 3);
	for (; v >= 0x80; v >>= 7)
		to[n++] = (u8)(v | 0x80);
	to[n++] = (u8)v;
	return n;
}

// finish sends the call's one event, its Result with a field, and ends it.
static void finish(unsigned field, const u8 *value, size_t n) {
	u8 result[80], event[100];
	if (call == 0)
		return;
	n = put_field(result, field, value, n);
	size_t m = put_varint(event, 1, 1); // seq
	m += put_field(event + m, 8, result, n);
	answer(call, event, m);
	call = 0;
}

static void finish_error(unsigned kind, long err) {
	u8 e[48];
	char text_[24];
	struct line l = LINE(text_);
	add_number(&l, (u64)-err, 10);
	size_t n = put_varint(e, 1, kind);
	n += put_field(e + n, 2, text_, l.used);
	finish(3, e, n);
}

static void finish_exit(u32 status) {
	u8 exit_[48];
	char text_[24];
	struct line l = LINE(text_);
	u32 signal = status & 0x7f;
	if (signal == 0) {
		finish(4, exit_, put_varint(exit_, 1, status >> 8 & 0xff));
		return;
	}
	add_number(&l, signal, 10);
	finish(4, exit_, put_field(exit_, 2, text_, l.used));
}

// The command.

static bool executable(const char *path) {
	struct stat st;
	return sys(__NR_newfstatat, AT_FDCWD, path, &st, 0) >= 0 && !is_folder(&st) && sys(__NR_faccessat, AT_FDCWD, path, 1) >= 0;
}

static const char *variable(const char *name) {
	size_t n = length(name);
	for (char **e = environment; *e != NULL; e++) {
		size_t i = 0;
		while (i < n && (*e)[i] == name[i])
			i++;
		if (i == n && (*e)[n] == '=')
			return *e + n + 1;
	}
	return NULL;
}

// find_program looks a name up as a shell would, in folders with absolute paths
// only. NULL is not found.
static const char *find_program(const char *name) {
	static char path[MAX_PATH];
	for (const char *c = name; *c != 0; c++)
		if (*c == '/')
			return name;
	const char *dirs = variable("PATH");
	while (dirs != NULL && *name != 0 && *dirs != 0) {
		struct line l = LINE(path);
		for (; *dirs != 0 && *dirs != ':'; dirs++)
			add(&l, (char[]){*dirs, 0});
		add(&l, "/");
		add(&l, name);
		if (*path == '/' && !l.cut && executable(path))
			return path;
		dirs += *dirs == ':';
	}
	return NULL;
}

// drop_handshake leaves the command what is between host and tool only.
static void drop_handshake(void) {
	static const char names[][32] = {
		"TOOLHOST_PLUGIN", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_CLIENT_CERT",
		"PLUGIN_UNIX_SOCKET_DIR", "PLUGIN_UNIX_SOCKET_GROUP", "PLUGIN_MULTIPLEX_GRPC",
	};
	for (size_t i = 0; i < COUNT(names); i++) {
		const char *value = variable(names[i]);
		char **to = environment;
		for (char **from = environment; *from != NULL; from++)
			if (value == NULL || *from + length(names[i]) + 1 != value)
				*to++ = *from;
		*to = NULL;
	}
}

// scope keeps a process, and what it starts, from signalling the adapter and
// connecting to its abstract sockets, where the kernel can (landlock(7), ABI 6). Inside
// a sandbox, whose domain is about files, each further domain denies moving files
// between folders unless it has a rule for that; elsewhere such a rule would deny all
// mounts. A sandbox has no new privileges.
static void scope(void) {
	enum { REFER = 1 << 13 };
	bool confined = sys(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0;
	u64 rules[3] = {confined ? REFER : 0, 0, 3};
	long fd = sys(__NR_landlock_create_ruleset, rules, sizeof rules, 0);
	if (fd < 0)
		return;
	if (confined) {
		long root = open_at(AT_FDCWD, "/", O_PATH, 0);
		struct landlock_path_beneath_attr anywhere = {.allowed_access = REFER, .parent_fd = (i32)root};
		sys(__NR_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &anywhere, 0);
		shut(root);
	}
	sys(__NR_landlock_restrict_self, fd, 0);
	shut(fd);
}

// become_command is what the command's process does to itself.
static void become_command(void) {
	set_handlers(false);
	scope();
}

// pass_on sends a command that is just born the signal that came before it. A later
// one the host sends to it, as to all processes.
static void pass_on(void) {
	u64 pending = 0;
	sys(__NR_rt_sigpending, &pending, sizeof pending);
	if (pending & SIGNAL_BIT(SIGTERM))
		sys(__NR_kill, child, SIGTERM);
}

static void start_command(void) {
	struct program p = {
		.path = find_program(command[0]), .argv = (const char *const *)command, .envp = (const char *const *)environment,
		.from = COMMAND_STDIN, .to = 0, .files = 3, .before = become_command,
	};
	struct stat st;
	long pid = p.path == NULL ? -ENOENT : start_program(&p);
	for (int fd = 0; fd < 3; fd++) // the command's end is to be the pipes' end
		shut(COMMAND_STDIN + fd);
	if (pid > 0) {
		child = (i32)pid;
		pass_on();
		return;
	}
	long seen = p.path == NULL ? -ENOENT : sys(__NR_newfstatat, AT_FDCWD, p.path, &st, 0);
	if (seen >= 0 && is_folder(&st))
		pid = -EISDIR;
	finish_error(seen == -ENOENT && pid == -ENOENT ? NOT_FOUND : NOT_EXECUTABLE, pid);
}

static void begin_call(u32 stream) {
	if (called || *command == NULL) {
		refuse_request(stream, 9); // FAILED_PRECONDITION
		return;
	}
	called = true;
	call = stream;
	if (stopped)
		finish_error(CANCELLED, 0);
	else
		start_command();
}

void reset_request(u32 stream) {
	if (stream != call)
		return;
	call = 0;
	stopped = true;
}

static void reap(void) {
	u32 status;
	if (child > 0 && sys(__NR_wait4, child, &status, WNOHANG, NULL) == child) {
		child = 0;
		finish_exit(status);
	}
}

// Requests. A method is known by its path when its headers are there, and begins
// when all of its request is.

enum method { UNKNOWN, CALL, CANCEL, QUIET, HEALTH, SHUTDOWN, BROKER };

int method_of(const char *path) {
	static const struct {
		char path[40];
		enum method method;
	} methods[] = {
		{"/toolhost.plugin.v1.Tool/Call", CALL},
		{"/toolhost.plugin.v1.Tool/Cancel", CANCEL},
		{"/toolhost.plugin.v1.Tool/Answer", QUIET},
		{"/toolhost.plugin.v1.Tool/Acknowledge", QUIET},
		{"/grpc.health.v1.Health/Check", HEALTH},
		{"/plugin.GRPCController/Shutdown", SHUTDOWN},
		{"/plugin.GRPCBroker/StartStream", BROKER},
	};
	for (size_t i = 0; i < COUNT(methods); i++)
		if (equal(path, methods[i].path))
			return methods[i].method;
	return UNKNOWN;
}

bool never_ends(int method) { return method == BROKER; }

void serve_method(int method, u32 stream) {
	switch ((enum method)method) {
	case CALL:
		begin_call(stream);
		return;
	case CANCEL:
		stopped = true;
		answer(stream, "", 0);
		return;
	case QUIET:
		answer(stream, "", 0);
		return;
	case HEALTH:
		answer(stream, "\x08\x01", 2); // SERVING
		return;
	case SHUTDOWN:
		answer(stream, "", 0);
		leave(0);
	case BROKER: // it stays open, and nothing ever comes of it
		return;
	case UNKNOWN:
		refuse_request(stream, 12); // UNIMPLEMENTED
	}
}

static void take_signal(void) {
	struct signalfd_siginfo info;
	if (sys(__NR_read, signals_fd, &info, sizeof info) != sizeof info)
		return;
	if (info.ssi_signo == SIGTERM)
		stopped = true;
	else
		reap();
}

// accept_host accepts the one connection there will be.
static int accept_host(void) {
	enum { UNIX = 1, STREAM = 1 };
	struct sockaddr_un address = {.sun_family = UNIX};
	struct line path = LINE(address.sun_path);
	char text_[160];
	struct line greeting = LINE(text_);
	const char *dir = variable("PLUGIN_UNIX_SOCKET_DIR");
	add(&path, dir == NULL ? "." : dir);
	add(&path, "/command");
	add(&greeting, "1|1|unix|");
	add(&greeting, address.sun_path);
	add(&greeting, "|grpc|\n");
	long listener = sys(__NR_socket, UNIX, STREAM | O_CLOEXEC, 0);
	if (path.cut || listener < 0 || sys(__NR_bind, listener, &address, sizeof address) < 0 || sys(__NR_listen, listener, 1) < 0)
		lost();
	sys(__NR_write, 1, text_, greeting.used);
	long conn = sys(__NR_accept4, listener, NULL, NULL, O_CLOEXEC);
	if (conn < 0)
		lost();
	shut(listener);
	return (int)conn;
}

int command_adapter(char **argv, char **envp) {
	const u64 wanted = SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGTERM);
	command = argv;
	environment = envp;
	const char *cookie = variable("TOOLHOST_PLUGIN");
	if (cookie == NULL || !equal(cookie, "toolhost.plugin.v1"))
		return 2;
	sys(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	sys(__NR_close_range, COMMAND_STDIN, ~0U, CLOSE_RANGE_CLOEXEC);
	set_handlers(true); // the command may send any that it can
	block_signals(wanted);
	signals_fd = (int)sys(__NR_signalfd4, -1, &wanted, sizeof wanted, O_CLOEXEC | O_NONBLOCK);
	if (signals_fd < 0)
		lost();
	int conn = accept_host();
	drop_handshake();
	begin_connection(conn);
	struct pollfd fds[2] = {{signals_fd, POLLIN, 0}, {conn, POLLIN, 0}};
	for (;;) {
		sys(__NR_ppoll, fds, 2, NULL, NULL, 0);
		if (fds[0].revents != 0)
			take_signal();
		if (fds[1].revents != 0)
			take_frame();
	}
}
