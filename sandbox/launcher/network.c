// The call's own network: an interface lo with addresses and routes, and the
// sockets that are born in it and served by the host.
#include "launcher.h"
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

enum { INET = 2, INET6 = 10, NETLINK = 16, STREAM = 1, DATAGRAM = 2, LO = 1, BACKLOG = 1024 };

long loopback(void) {
	enum { UP = 1 };
	struct { // ifreq of netdevice(7); its header needs a C library
		char name[16];
		short flags;
		char rest[22];
	} request = {.name = "lo", .flags = UP};
	long fd = sys(__NR_socket, INET, DATAGRAM | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	long err = sys(__NR_ioctl, fd, SIOCSIFFLAGS, &request);
	shut(fd);
	return err;
}

static void put_big(u8 *to, u64 v, int n) {
	for (int i = n - 1; i >= 0; i--, v >>= 8)
		to[i] = (u8)v;
}

// put_address writes an address as the kernel has it, and returns its length.
static size_t put_address(u8 *to, const struct net *n) {
	if (!n->v6) {
		put_big(to, (u64)n->low, 4);
		return 4;
	}
	put_big(to, (u64)n->high, 8);
	put_big(to + 8, (u64)n->low, 8);
	return 16;
}

// A request to rtnetlink(7): its header, the message, and attributes.
struct ask {
	struct nlmsghdr header;
	u8 body[80];
};

static void append(struct ask *a, const void *bytes, size_t n) {
	memcpy((u8 *)a + a->header.nlmsg_len, bytes, n);
	a->header.nlmsg_len += (u32)((n + 3) & ~(size_t)3);
}

static void attribute(struct ask *a, u16 type, const void *bytes, size_t n) {
	struct rtattr attr = {.rta_len = (u16)(sizeof attr + n), .rta_type = type};
	append(a, &attr, sizeof attr);
	append(a, bytes, n);
}

// tell sends a request and returns the kernel's answer to it.
static long tell(int fd, struct ask *a) {
	struct {
		struct nlmsghdr header;
		i32 error;
		u8 rest[256];
	} answer;
	long n = sys(__NR_sendto, fd, a, a->header.nlmsg_len, NOSIGNAL, NULL, 0);
	if (n >= 0)
		n = sys(__NR_recvfrom, fd, &answer, sizeof answer, 0, NULL, NULL);
	if (n < 0)
		return n;
	if ((size_t)n < sizeof answer.header + sizeof answer.error || answer.header.nlmsg_type != NLMSG_ERROR)
		return -EBADMSG;
	return answer.error;
}

static struct ask begin_ask(u16 type) {
	return (struct ask){.header = {
		.nlmsg_len = sizeof(struct nlmsghdr), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE,
	}};
}

static long add_address(int fd, const struct net *n) {
	u8 bytes[16];
	size_t size = put_address(bytes, n);
	struct ask a = begin_ask(RTM_NEWADDR);
	struct ifaddrmsg m = {.ifa_family = n->v6 ? INET6 : INET, .ifa_prefixlen = (u8)n->bits, .ifa_scope = RT_SCOPE_HOST, .ifa_index = LO};
	append(&a, &m, sizeof m);
	attribute(&a, IFA_LOCAL, bytes, size);
	attribute(&a, IFA_ADDRESS, bytes, size);
	return tell(fd, &a);
}

static long add_route(int fd, const struct net *n) {
	u8 bytes[16];
	u32 lo = LO;
	size_t size = put_address(bytes, n);
	struct ask a = begin_ask(RTM_NEWROUTE);
	struct rtmsg m = {
		.rtm_family = n->v6 ? INET6 : INET, .rtm_dst_len = (u8)n->bits, .rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL,
	};
	append(&a, &m, sizeof m);
	attribute(&a, RTA_DST, bytes, size);
	attribute(&a, RTA_OIF, &lo, sizeof lo);
	return tell(fd, &a);
}

// set_on turns an option of an IPv6 socket on.
static long set_on(int fd, int option) {
	u32 on = 1;
	return sys(__NR_setsockopt, fd, IPPROTO_IPV6, option, &on, sizeof on);
}

// bind_to binds without SO_REUSEADDR and SO_REUSEPORT: nobody else has the port.
static long bind_to(int fd, const struct listener *l) {
	if (!l->at.v6) {
		struct sockaddr_in to = {.sin_family = INET};
		put_big((u8 *)&to.sin_port, (u64)l->port, 2);
		put_address((u8 *)&to.sin_addr, &l->at);
		return sys(__NR_bind, fd, &to, sizeof to);
	}
	struct sockaddr_in6 to = {.sin6_family = INET6};
	put_big((u8 *)&to.sin6_port, (u64)l->port, 2);
	put_address((u8 *)&to.sin6_addr, &l->at);
	long err = set_on(fd, IPV6_V6ONLY);
	if (err >= 0)
		err = set_on(fd, IPV6_FREEBIND); // which addresses of local routes need in IPv6
	return err < 0 ? err : sys(__NR_bind, fd, &to, sizeof to);
}

static long listener_socket(const struct listener *l) {
	long fd = sys(__NR_socket, l->at.v6 ? INET6 : INET, (l->datagram ? DATAGRAM : STREAM) | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	long err = bind_to((int)fd, l);
	if (err >= 0 && !l->datagram)
		err = sys(__NR_listen, fd, BACKLOG);
	if (err >= 0)
		return fd;
	shut(fd);
	return err;
}

static void configure(const struct root *root) {
	int fd = (int)must("configure the network", "", sys(__NR_socket, NETLINK, 3 | O_CLOEXEC, 0)); // SOCK_RAW
	EACH(a, root->addresses, read_net)
		must("add a network address", "", add_address(fd, &a.it));
	EACH(r, root->routes, read_net)
		must("add a network route", "", add_route(fd, &r.it));
	shut(fd);
}

void network(const struct root *root) {
	u8 sockets = SOCKETS;
	int fds[SOCKET_FILES + MAX_SOCKETS], n = 0;
	if (root->loopback && !net_is_ready())
		must("bring lo up", "", loopback());
	if (root->listen.n == 0)
		return;
	configure(root);
	// The namespace's own counters: they can be read for as long as one holds them.
	fds[n++] = (int)must("open the network's counters", "", open_at(AT_FDCWD, "/proc/self/net/snmp", O_RDONLY, 0));
	long six = open_at(AT_FDCWD, "/proc/self/net/snmp6", O_RDONLY, 0); // which a kernel without IPv6 has not
	fds[n++] = six >= 0 ? (int)six : (int)must("open the network's counters", "", open_at(AT_FDCWD, "/proc/self/net/snmp", O_RDONLY, 0));
	EACH(l, root->listen, read_listener)
		fds[n++] = (int)must("listen on the call's network", "", listener_socket(&l.it));
	must("report", "", send_with(CONTROL_FD, &sockets, 1, fds, n));
	while (n > 0)
		shut(fds[--n]);
}
