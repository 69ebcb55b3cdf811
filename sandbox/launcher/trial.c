// The tool of a trial call: it does what the sandbox forbids, and its exit
// status says what was possible all the same. Bit n stands for the nth entry of
// contradictions in sandbox/probe.go.
#include "launcher.h"
#include <linux/in.h>

// confined_here: this is a process of a sandbox, by what only a sandbox shows.
// Outside of one what follows would be done to the host.
static bool confined_here(void) {
	struct stat st;
	return sys(__NR_newfstatat, AT_FDCWD, "/.toolhost-trial-call", &st, 0) >= 0;
}

static bool any_writable(char **paths) {
	for (; *paths != NULL; paths++) {
		char path[MAX_PATH];
		struct line l = LINE(path);
		add(&l, *paths);
		add(&l, "/.toolhost-trial");
		long fd = open_at(AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY, 0600);
		if (fd < 0)
			continue;
		shut(fd);
		sys(__NR_unlinkat, AT_FDCWD, path, 0);
		return true;
	}
	return false;
}

static bool contains(const char *in, const char *what) {
	for (size_t n = length(what); *in != 0; in++) {
		size_t i = 0;
		while (i < n && in[i] == what[i])
			i++;
		if (i == n)
			return true;
	}
	return false;
}

// privileged reads its own state from the kernel: capabilities, privileges to
// come, and the filter.
static bool privileged(void) {
	static const char wanted[][32] = {
		"\nCapInh:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n", "\nCapEff:\t0000000000000000\n",
		"\nCapBnd:\t0000000000000000\n", "\nCapAmb:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n",
	};
	static char status[16 << 10];
	long fd = open_at(AT_FDCWD, "/proc/self/status", O_RDONLY, 0);
	long n = sys(__NR_read, fd, status, sizeof status - 1);
	if (fd < 0 || n < 0)
		return true;
	for (size_t i = 0; i < COUNT(wanted); i++)
		if (!contains(status, wanted[i]))
			return true;
	return false;
}

// reaches_out tries to send one datagram to a documentation address (RFC 5737).
static bool reaches_out(void) {
	enum { INET = 2, DATAGRAM = 2 };
	struct sockaddr_in address = {.sin_family = INET, .sin_port = 9 << 8, .sin_addr = {192 | 0 << 8 | 2 << 16 | 1 << 24}};
	long fd = sys(__NR_socket, INET, DATAGRAM | O_CLOEXEC, 0);
	return fd >= 0 && sys(__NR_connect, fd, &address, sizeof address) >= 0;
}

int trial(char **paths) {
	if (*paths == NULL || sys(__NR_getpid) == 1 || !confined_here())
		return 0; // nothing is forbidden here, so nothing is tried
	return any_writable(paths) | (sys(__NR_mount, "none", "/tmp", "tmpfs", 0, "") != -EPERM) << 1 |
		(sys(__NR_unshare, CLONE_NEWUSER) != -EPERM) << 2 | privileged() << 3 | (sys(__NR_getuid) == 0) << 4 | reaches_out() << 5;
}
