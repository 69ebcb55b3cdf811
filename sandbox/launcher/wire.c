#include "wire.h"

static void fail(struct reader *r) {
	r->bad = true;
	r->at = r->end;
}

i64 number(struct reader *r) {
	if (r->end - r->at < 8) {
		fail(r);
		return 0;
	}
	i64 v = (i64)get_number(r->at);
	r->at += 8;
	return v;
}

bool flag(struct reader *r) {
	i64 v = number(r);
	if (v != 0 && v != 1)
		fail(r);
	return v == 1;
}

// count is a length: never more than what is left to read.
static u64 count(struct reader *r) {
	u64 n = (u64)number(r);
	if (n > (u64)(r->end - r->at)) {
		fail(r);
		return 0;
	}
	return n;
}

// content is a text that may have a 0 in it.
static const char *content(struct reader *r, u64 *n) {
	*n = count(r);
	const char *s = (const char *)r->at;
	if (r->bad || (u64)(r->end - r->at) < *n + 1 || s[*n] != 0) {
		fail(r);
		*n = 0;
		return "";
	}
	r->at += *n + 1;
	return s;
}

const char *text(struct reader *r) {
	u64 n;
	const char *s = content(r, &n);
	if (length(s) != n)
		fail(r);
	return s;
}

struct mount read_mount(struct reader *r) {
	struct mount m = {0};
	for (i64 *v[] = {&m.kind, &m.bytes, &m.inodes, &m.mode, &m.on_device, &m.on_inode}, **p = v; p < v + COUNT(v); p++)
		**p = number(r);
	for (bool *v[] = {&m.write, &m.noexec, &m.device, &m.optional}, **p = v; p < v + COUNT(v); p++)
		**p = flag(r);
	m.source = text(r);
	m.target = text(r);
	return m;
}

struct link read_link(struct reader *r) {
	struct link l;
	l.target = text(r);
	l.path = text(r);
	return l;
}

struct file read_file(struct reader *r) {
	struct file f;
	f.path = text(r);
	f.content = content(r, &f.size);
	f.secret = flag(r);
	return f;
}

struct limit read_limit(struct reader *r) {
	struct limit l;
	l.resource = number(r);
	l.value = number(r);
	return l;
}

struct net read_net(struct reader *r) {
	struct net n;
	n.v6 = flag(r);
	n.high = number(r);
	n.low = number(r);
	n.bits = number(r);
	return n;
}

struct listener read_listener(struct reader *r) {
	struct listener l;
	l.datagram = flag(r);
	l.at = read_net(r);
	l.port = number(r);
	return l;
}

struct stage read_stage(struct reader *r) {
	struct stage s;
	s.source = text(r);
	s.write = flag(r);
	s.map = flag(r);
	s.own = flag(r);
	s.uid = number(r);
	s.gid = number(r);
	return s;
}

// SKIP reads a list of what READ reads, to check it and to find its end.
#define SKIP(r, READ) \
	({ \
		struct list skipped = {.n = count(r)}; \
		skipped.at = *(r); \
		for (u64 i = 0; i < skipped.n && !(r)->bad; i++) \
			(void)READ(r); \
		skipped; \
	})

static void read_root(struct root *o, struct reader *r) {
	o->loopback = flag(r);
	o->cgroup_ns = flag(r);
	o->bytes = number(r);
	o->landlock = number(r);
	o->seccomp = number(r);
	o->slack = number(r);
	o->hostname = text(r);
	o->workspace = text(r);
	o->masked = SKIP(r, text);
	o->read_only = SKIP(r, text);
	o->writable = SKIP(r, text);
	o->mounts = SKIP(r, read_mount);
	o->links = SKIP(r, read_link);
	o->files = SKIP(r, read_file);
	o->sysctls = SKIP(r, read_file);
	o->limits = SKIP(r, read_limit);
	o->addresses = SKIP(r, read_net);
	o->routes = SKIP(r, read_net);
	o->listen = SKIP(r, read_listener);
}

static void read_program(struct tool *t, struct reader *r) {
	t->timer = number(r);
	t->dir = text(r);
	t->path = text(r);
	t->args = SKIP(r, text);
	t->env = SKIP(r, text);
	if (t->timer < 0)
		fail(r);
}

static bool few(i64 n) { return n >= 0 && n <= MAX_FILES; }

static bool complete(const struct reader *r) { return !r->bad && r->at == r->end; }

bool read_options(struct options *o, const u8 *bytes, size_t n) {
	struct reader r = {.at = bytes, .end = bytes + n};
	o->namespaced = flag(&r);
	o->proc = flag(&r);
	o->kill = flag(&r);
	o->confine = flag(&r);
	o->lease = flag(&r);
	o->waits = flag(&r);
	o->extra = number(&r);
	o->held = number(&r);
	o->staged = number(&r);
	o->socket_dir = text(&r);
	read_program(&o->tool, &r);
	read_root(&o->root, &r);
	return complete(&r) && few(o->extra) && few(o->held) && few(o->staged) && o->root.listen.n <= MAX_SOCKETS && (!o->lease || o->held > 0);
}

bool read_tool(struct tool *t, const u8 *bytes, size_t n) {
	struct reader r = {.at = bytes, .end = bytes + n};
	read_program(t, &r);
	return complete(&r);
}

bool read_birth(struct birth *b, const u8 *bytes, size_t n) {
	struct reader r = {.at = bytes, .end = bytes + n};
	for (i64 *v[] = {&b->flags, &b->inside_uid, &b->inside_gid, &b->uid, &b->gid, &b->enter}, **p = v; p < v + COUNT(v); p++)
		**p = number(&r);
	b->user = flag(&r);
	b->drop_groups = flag(&r);
	b->cgroup = flag(&r);
	b->lone = flag(&r);
	b->stage = SKIP(&r, read_stage);
	return complete(&r) && few(b->enter) && few((i64)b->stage.n);
}
