// Decodes what a test of package sandbox/internal/wire sends, built with a C
// library and sanitizers: for each message its kind, its length, its bytes. The
// answer is a byte: 1 where it was decoded, and read to its end, else 0.
#include "../wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static u64 seen; // what is read must not be optimized away

static void see(const char *s) { seen += strlen(s); }

static void see_texts(const struct list *l) {
	EACH(s, *l, text)
		see(s.it);
}

static void see_mounts(const struct root *r) {
	EACH(m, r->mounts, read_mount) {
		see(m.it.source);
		see(m.it.target);
	}
}

static void see_root(const struct root *r) {
	see(r->hostname);
	see(r->workspace);
	see_texts(&r->masked);
	see_texts(&r->read_only);
	see_texts(&r->writable);
	see_mounts(r);
	EACH(l, r->links, read_link) {
		see(l.it.target);
		see(l.it.path);
	}
	EACH(f, r->files, read_file)
		for (u64 i = 0; i <= f.it.size; i++)
			seen += (u8)f.it.content[i];
	EACH(f, r->sysctls, read_file)
		see(f.it.content);
	EACH(l, r->limits, read_limit)
		seen += (u64)l.it.resource + (u64)l.it.value;
	EACH(n, r->addresses, read_net)
		seen += (u64)n.it.low;
	EACH(n, r->routes, read_net)
		seen += (u64)n.it.high;
	EACH(l, r->listen, read_listener)
		seen += (u64)l.it.port;
}

static void see_tool(const struct tool *t) {
	see(t->dir);
	see(t->path);
	see_texts(&t->args);
	see_texts(&t->env);
}

static int decode_options(const u8 *bytes, size_t n) {
	struct options o;
	if (!read_options(&o, bytes, n))
		return 0;
	see(o.socket_dir);
	see_tool(&o.tool);
	see_root(&o.root);
	return 1;
}

static int decode_tool(const u8 *bytes, size_t n) {
	struct tool t;
	if (!read_tool(&t, bytes, n))
		return 0;
	see_tool(&t);
	return 1;
}

static int decode_birth(const u8 *bytes, size_t n) {
	struct birth b;
	if (!read_birth(&b, bytes, n))
		return 0;
	EACH(s, b.stage, read_stage)
		see(s.it.source);
	return 1;
}

int main(void) {
	u8 kind;
	u32 n;
	while (fread(&kind, 1, 1, stdin) == 1 && fread(&n, sizeof n, 1, stdin) == 1) {
		u8 *bytes = malloc(n); // exactly as large: what is read beyond it is noticed
		if (n > 0 && (bytes == NULL || fread(bytes, n, 1, stdin) != 1))
			return 1;
		putchar(kind == 'o' ? decode_options(bytes, n) : kind == 't' ? decode_tool(bytes, n) : decode_birth(bytes, n));
		fflush(stdout);
		free(bytes);
	}
	return seen == 1;
}
