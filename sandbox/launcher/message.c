// Messages with descriptors (unix(7), cmsg(3)).
#include "launcher.h"
#include <linux/socket.h>
#include <linux/uio.h>

enum { SOL_SOCKET_ = 1, SCM_RIGHTS_ = 1, CMSG_HEADER = 16 };

enum { CMSG_CLOEXEC = 0x40000000, TRUNCATED = 0x20, CTRUNCATED = 0x8 };

struct msghdr {
	void *name;
	u32 namelen;
	struct iovec *iov;
	size_t iovlen;
	void *control;
	size_t controllen;
	u32 flags;
};

struct rights {
	size_t len;
	i32 level, type;
	i32 fds[MAX_FILES + 3];
};

long receive(int fd, struct packet *p) {
	struct rights r;
	struct iovec iov = {p->bytes, p->size};
	struct msghdr m = {.iov = &iov, .iovlen = 1, .control = &r, .controllen = sizeof r};
	p->nfiles = 0;
	p->cut = false;
	long n = sys(__NR_recvmsg, fd, &m, CMSG_CLOEXEC | DONTWAIT);
	if (n < 0)
		return n;
	p->cut = (m.flags & (TRUNCATED | CTRUNCATED)) != 0;
	if (m.controllen < CMSG_HEADER || r.level != SOL_SOCKET_ || r.type != SCM_RIGHTS_)
		return n;
	p->nfiles = (int)((r.len - CMSG_HEADER) / sizeof *r.fds);
	memcpy(p->files, r.fds, (size_t)p->nfiles * sizeof *r.fds);
	return n;
}

long send_with(int fd, const void *bytes, size_t n, const int *files, int nfiles) {
	struct rights r = {.len = CMSG_HEADER + (size_t)nfiles * sizeof *files, .level = SOL_SOCKET_, .type = SCM_RIGHTS_};
	struct iovec iov = {(void *)bytes, n};
	struct msghdr m = {.iov = &iov, .iovlen = 1};
	if (nfiles > 0) {
		memcpy(r.fds, files, (size_t)nfiles * sizeof *files);
		m.control = &r;
		m.controllen = (r.len + 7) & ~(size_t)7;
	}
	return sys(__NR_sendmsg, fd, &m, NOSIGNAL);
}

void send_failure(int control, const char *step, const char *what, long err) {
	char message[MAX_MESSAGE + 1] = {FAILED};
	u32 errno_ = (u32)-err;
	memcpy(message + 1, &errno_, sizeof errno_); // both architectures are little-endian
	struct line l = {.at = message + 5, .size = sizeof message - 5};
	add(&l, step);
	add(&l, what);
	sys(__NR_sendto, control, message, 5 + l.used, NOSIGNAL | DONTWAIT);
}

long must(const char *step, const char *what, long err) {
	if (err >= 0)
		return err;
	send_failure(CONTROL_FD, step, what, err);
	leave(EXIT_SETUP);
}
