// Text, files, clocks and signals.
#include "launcher.h"
#include <asm/signal.h>

void add(struct line *l, const char *s) {
	for (; *s != 0 && l->used + 1 < l->size; s++)
		l->at[l->used++] = *s;
	l->at[l->used] = 0;
	l->cut = l->cut || *s != 0;
}

void add_number(struct line *l, u64 v, unsigned base) {
	char digits[24];
	char *p = digits + sizeof digits - 1;
	*p = 0;
	do
		*--p = (char)('0' + v % base);
	while ((v /= base) != 0);
	add(l, p);
}

void add_path(struct line *l, const char *before, u64 number_, const char *after) {
	add(l, before);
	add_number(l, number_, 10);
	add(l, after);
}

long overwrite(int dir, const char *path, const char *content) {
	long fd = open_at(dir, path, O_WRONLY, 0);
	if (fd < 0)
		return fd;
	long n = sys(__NR_write, fd, content, length(content));
	shut(fd);
	return n < 0 ? n : 0;
}

u64 monotonic(void) {
	struct __kernel_timespec now;
	sys(__NR_clock_gettime, CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
}

void block_signals(u64 blocked) { sys(__NR_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof blocked); }

// The kernel's struct sigaction on both architectures, not a C library's.
struct action {
	uintptr_t handler;
	u64 flags;
	uintptr_t restorer;
	u64 mask;
};

// SIGCHLD is spared: ignoring it would discard the wait statuses.
void set_handlers(bool ignore) {
	struct action a = {.handler = ignore}; // SIG_IGN is 1, SIG_DFL 0
	for (int n = 1; n <= SIGNALS; n++)
		if (n != SIGCHLD || !ignore)
			sys(__NR_rt_sigaction, n, &a, NULL, sizeof a.mask);
}

long child_signals(void) {
	u64 set = SIGNAL_BIT(SIGCHLD);
	return sys(__NR_signalfd4, -1, &set, sizeof set, O_CLOEXEC | O_NONBLOCK);
}

// What came with the signal is not read: a tool may have written it.
void take_child_signal(void) {
	u64 set = SIGNAL_BIT(SIGCHLD);
	struct __kernel_timespec now = {0, 0};
	sys(__NR_rt_sigtimedwait, &set, NULL, &now, sizeof set);
}
