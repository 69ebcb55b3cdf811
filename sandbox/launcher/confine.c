// What is taken from the launcher before it forks the tool. There is no way back
// from any of it.
#include "launcher.h"
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#if defined(__x86_64__)
#include "filter_amd64.h"
#else
#include "filter_arm64.h"
#endif

// Every way to capabilities by uid 0 is locked out (capabilities(7)).
#define SECURE_BITS \
	(1 << SECURE_NOROOT | 1 << SECURE_NOROOT_LOCKED | 1 << SECURE_NO_SETUID_FIXUP | 1 << SECURE_NO_SETUID_FIXUP_LOCKED | \
		1 << SECURE_KEEP_CAPS_LOCKED | 1 << SECURE_NO_CAP_AMBIENT_RAISE | 1 << SECURE_NO_CAP_AMBIENT_RAISE_LOCKED)

static void drop_capabilities(void) {
	for (int c = 0; sys(__NR_prctl, PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		must("drop the bounding set", "", sys(__NR_prctl, PR_CAPBSET_DROP, c, 0, 0, 0));
	must("set secure bits", "", sys(__NR_prctl, PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0));
	must("drop ambient capabilities", "", sys(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct empty[2] = {{0}, {0}};
	must("drop capabilities", "", sys(__NR_capset, &header, empty));
	must("renounce new privileges", "", sys(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

// The newest rights and the struct of landlock(7), which older headers lack.
struct ruleset {
	u64 fs, net, scoped;
};

enum {
	REFER = 1 << 13,     // ABI 2
	TRUNCATE = 1 << 14,  // ABI 3
	IOCTL_DEV = 1 << 15, // ABI 5
	SCOPES = 3,          // ABI 6: abstract sockets, signals
	NEVER = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK,
	READING = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
	OF_FILES = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE | IOCTL_DEV,
};

static struct ruleset rules_of(i64 abi) {
	struct ruleset r = {.fs = REFER - 1};
	r.fs |= abi >= 2 ? REFER : 0;
	r.fs |= abi >= 3 ? TRUNCATE : 0;
	r.fs |= abi >= 5 ? IOCTL_DEV : 0;
	r.scoped = abi >= 6 ? SCOPES : 0;
	return r;
}

// allow adds a rule. A file can't have the rights of folders.
static long allow(int ruleset, const char *path, u64 rights) {
	struct stat st;
	long fd = open_at(AT_FDCWD, path, O_PATH, 0);
	if (fd < 0)
		return fd;
	long err = sys(__NR_fstat, fd, &st);
	if (!is_folder(&st))
		rights &= OF_FILES;
	struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = (i32)fd};
	if (err >= 0)
		err = sys(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	shut(fd);
	return err;
}

// landlock restricts this process and its children as the mounts already do: the
// whole tree may be read, only root->writable be written. Signals and abstract
// sockets end at the sandbox where the ABI has scopes.
static long landlock(const struct root *root) {
	struct ruleset r = rules_of(root->landlock);
	// Older kernels refuse what is longer than they know; all accept less.
	size_t size = root->landlock >= 6 ? sizeof r : root->landlock >= 4 ? 16 : 8;
	long rules = sys(__NR_landlock_create_ruleset, &r, size, 0);
	if (rules < 0)
		return rules;
	long err = allow((int)rules, "/", READING);
	EACH(path, root->writable, text)
		err = err < 0 ? err : allow((int)rules, path.it, r.fs & ~(u64)NEVER);
	if (err >= 0)
		err = sys(__NR_landlock_restrict_self, rules, 0);
	shut(rules);
	return err;
}

static long install_filter(i64 profile) {
	const struct sock_filter *program = strict_filter;
	size_t n = COUNT(strict_filter);
	if (profile == 0) {
		program = default_filter;
		n = COUNT(default_filter);
	}
	struct sock_fprog filter = {.len = (u16)n, .filter = (struct sock_filter *)program};
	return sys(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

void confine(const struct root *root) {
	sys(__NR_umask, 0022);
	EACH(l, root->limits, read_limit) {
		u64 both[2] = {(u64)l.it.value, (u64)l.it.value};
		must("set resource limits", "", sys(__NR_prlimit64, 0, l.it.resource, both, NULL));
	}
	if (root->slack > 0)
		must("let timers be late", "", sys(__NR_prctl, PR_SET_TIMERSLACK, root->slack, 0, 0, 0));
	// The caller's keys are not the tool's. A kernel without keyrings has none.
	sys(__NR_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	drop_capabilities();
	if (root->landlock > 0)
		must("apply Landlock", "", landlock(root));
	must("install the system call filter", "", install_filter(root->seccomp));
}
