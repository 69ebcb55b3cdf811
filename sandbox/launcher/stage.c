// Trees for launchers, and connections for hosts that may not reach a call's
// files.
#include "launcher.h"
#include <linux/openat2.h>
#include <linux/socket.h>
#include <linux/un.h>

#define CLONE_TREE (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH)
#define NO_LINKS (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static long clone_tree(int fd) { return sys(__NR_open_tree, fd, "", CLONE_TREE); }

// own_view opens a file of the host's in the zygote's own mount namespace, which
// it has where its host is not privileged: only from there can it be cloned. It
// must be the same file, which the host holds, so that no other can have its
// numbers.
static long own_view(const struct stat *want, const char *path) {
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = NO_LINKS};
	struct stat st;
	long fd = sys(__NR_openat2, AT_FDCWD, path, &how, sizeof how);
	if (fd < 0)
		return fd;
	long err = sys(__NR_fstat, fd, &st);
	if (err >= 0 && (st.st_dev != want->st_dev || st.st_ino != want->st_ino))
		err = -ESTALE;
	if (err >= 0)
		err = clone_tree((int)fd);
	shut(fd);
	return err;
}

// check returns an error for what is not to be cloned.
static long check(const struct stage *s, const struct stat *st) {
	if (s->own && !is_folder(st))
		return -ENOTDIR;
	if (s->own && st->st_uid != (u32)sys(__NR_geteuid))
		return -EPERM;
	return st->st_nlink == 0 ? -ESTALE : 0; // what is in it would be lost
}

// clone_source clones what the host has opened and judged; no path is followed.
static long clone_source(const struct stage *s, int source) {
	struct stat st;
	long err = sys(__NR_fstat, source, &st);
	if (err >= 0)
		err = check(s, &st);
	if (err < 0)
		return err;
	long tree = clone_tree(source);
	return tree == -EINVAL ? own_view(&st, s->source) : tree;
}

long stage(const struct stage *s, int source, int users, const char **step) {
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .propagation = MS_PRIVATE};
	if (!s->write)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (s->map) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (u64)users;
	}
	*step = "clone the tree of ";
	long tree = clone_source(s, source);
	if (tree < 0)
		return tree;
	*step = "map the owner of ";
	long err = sys(__NR_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr);
	return err < 0 ? err : tree;
}

// connect_beneath follows no link, and resolves the name exactly once.
static long connect_beneath(int dir, const char *name) {
	enum { UNIX = 1, STREAM = 1 };
	struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_BENEATH | NO_LINKS};
	struct stat st;
	long file = sys(__NR_openat2, dir, name, &how, sizeof how);
	if (file < 0)
		return file;
	long err = sys(__NR_fstat, file, &st);
	if (err < 0 || !is_kind(&st, 0140000))
		return err < 0 ? err : -ENOTSOCK;
	struct sockaddr_un address = {.sun_family = UNIX};
	struct line l = LINE(address.sun_path);
	add_path(&l, "/proc/self/fd/", (u64)file, "");
	long conn = sys(__NR_socket, UNIX, STREAM | O_CLOEXEC | O_NONBLOCK, 0);
	if (conn < 0)
		return conn;
	err = sys(__NR_connect, conn, &address, sizeof address);
	return err < 0 ? err : conn;
}

// connect_for_host makes a connection that the host may not: the zygote is root
// of the user namespace that its calls' users come from.
void connect_for_host(const char *name, const struct packet *p) {
	begin_request();
	int conn = (int)connect_beneath(p->files[1], name);
	if (conn < 0) {
		refuse(p->files[0], "connect", "", conn);
		leave(EXIT_SETUP);
	}
	u8 ready = READY;
	send_with(p->files[0], &ready, 1, &conn, 1);
	leave(0);
}
