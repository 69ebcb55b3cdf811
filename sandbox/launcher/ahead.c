// Networks that are made before they are asked for, since making one takes a good
// part of a birth. Each is of one call alone: lo in it is up, and nothing else has
// happened there. They belong to the zygote's user namespace, and not to a call's,
// so that no launcher can change its own.
#include "launcher.h"

enum { AHEAD = 2 };

static int home = -1;         // the zygote's own
static int asked[2], made[2]; // pipes
static bool ready;            // whether there is who makes them
static int under_way;         // asked for, or made and not taken
static bool entered;

// make_net returns a descriptor of a new network, or -1. This thread is in none of
// a call's afterwards.
static i32 make_net(void) {
	i32 net = -1;
	if (sys(__NR_unshare, CLONE_NEWNET) < 0)
		return -1;
	if (loopback() >= 0)
		net = keep_only(open_at(AT_FDCWD, "/proc/thread-self/ns/net", O_RDONLY, 0));
	sys(__NR_setns, home, CLONE_NEWNET);
	return net;
}

static void make_nets(void *unused) {
	(void)unused;
	u8 one;
	fall_back(); // nobody waits for it
	while (sys(__NR_read, asked[0], &one, 1) == 1) {
		i32 net = make_net();
		sys(__NR_write, made[1], &net, sizeof net);
	}
	for (;;)
		sys(__NR_exit, 0);
}

void start_maker(void) {
	static u8 stack[4096] __attribute__((aligned(16)));
	if (home >= 0)
		return;
	home = keep_only(open_at(AT_FDCWD, "/proc/self/ns/net", O_RDONLY, 0));
	ready = home >= 0 && kept_pipe(asked) && kept_pipe(made) && sys(__NR_fcntl, made[0], F_SETFL, O_NONBLOCK) >= 0 &&
		spawn_thread(stack + sizeof stack, make_nets) > 0;
}

void net_used(void) {
	static bool again;
	u8 one = 1;
	// The host of a single call has none behind it.
	if (again && ready && under_way < AHEAD && sys(__NR_write, asked[1], &one, 1) == 1)
		under_way++;
	again = true;
}

i32 take_net(void) {
	i32 net = -1;
	if (under_way == 0 || sys(__NR_read, made[0], &net, sizeof net) != sizeof net)
		return -1;
	under_way--;
	return net;
}

bool enter_net(i32 net) { return entered = net >= 0 && sys(__NR_setns, net, CLONE_NEWNET) >= 0; }

bool net_is_ready(void) { return entered; }
