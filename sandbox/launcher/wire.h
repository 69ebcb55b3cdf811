// The wire of package sandbox/internal/wire, in the launcher's words. Numbers
// are 8 bytes, texts are their length, their bytes and a 0, lists are their
// length and their elements. What is decoded lies where it was read.
#ifndef WIRE_H
#define WIRE_H

#include "base.h"

enum { MAX_MESSAGE = 512, MAX_BIRTH = 64 << 10, MAX_FILES = 250, MAX_SOCKETS = 200, SOCKET_FILES = 2 };

// Descriptors that a launcher is born with.
enum { CONTROL_FD = 3, SPEC_FD = 4, FIRST_FD = 5 };

// Kinds of message.
enum { BORN = 'B', SOCKETS = 'N', READY = 'R', STARTED = 'S', FAILED = 'E', EXITED = 'X', TIMER = 'T', BEGIN = 'G' };

// Kinds of request to the zygote.
enum { REQUEST_BIRTH = 'b', REQUEST_CONNECT = 'c' };

struct reader {
	const u8 *at, *end;
	bool bad;
};

i64 number(struct reader *r);
bool flag(struct reader *r);
const char *text(struct reader *r);

// A list is read where it stands, as often as is wanted.
struct list {
	struct reader at;
	u64 n;
};

// EACH does what follows with each item of a list, which is name.it.
#define EACH(name, list, READ) \
	for (struct { struct reader r; u64 i; __typeof__(READ(NULL)) it; } name = {.r = (list).at}; \
		name.i < (list).n && (name.it = READ(&name.r), true); name.i++)

enum mount_kind { MOUNT_BIND, MOUNT_STAGED, MOUNT_TMPFS, MOUNT_PROC, MOUNT_MASK, MOUNT_FIXED, MOUNT_MQUEUE };

struct mount {
	i64 kind, bytes, inodes, mode, on_device, on_inode;
	bool write, noexec, device, optional;
	const char *source, *target;
};

struct link {
	const char *target, *path;
};

struct file {
	const char *path, *content;
	u64 size;
	bool secret; // wire.Text's Private
};

struct limit {
	i64 resource, value;
};

struct net {
	bool v6;
	i64 high, low, bits;
};

struct listener {
	bool datagram;
	struct net at;
	i64 port;
};

struct root {
	bool loopback, cgroup_ns;
	i64 bytes, landlock, seccomp, slack;
	const char *hostname, *workspace;
	struct list masked, read_only, writable, mounts, links, files, sysctls, limits, addresses, routes, listen;
};

struct tool {
	i64 timer;
	const char *dir, *path;
	struct list args, env;
};

struct options {
	bool namespaced, proc, kill, confine, lease, waits;
	i64 extra, held, staged;
	const char *socket_dir;
	struct tool tool;
	struct root root;
};

struct stage {
	const char *source;
	bool write, map, own;
	i64 uid, gid; // of the file system, where map is set
};

struct birth {
	i64 flags, inside_uid, inside_gid, uid, gid, enter;
	bool user, drop_groups, cgroup, lone;
	struct list stage;
};

struct mount read_mount(struct reader *r);
struct link read_link(struct reader *r);
struct file read_file(struct reader *r);
struct limit read_limit(struct reader *r);
struct net read_net(struct reader *r);
struct listener read_listener(struct reader *r);
struct stage read_stage(struct reader *r);

// These return false where the bytes are not exactly one such value.
bool read_options(struct options *o, const u8 *bytes, size_t n);
bool read_tool(struct tool *t, const u8 *bytes, size_t n);
bool read_birth(struct birth *b, const u8 *bytes, size_t n);

#endif
