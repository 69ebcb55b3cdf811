// The root file system of a confined tool. Every target is reached below the new
// root, following no link: trees that tools have written to may lie on the way.
#include "launcher.h"
#include <asm/ioctls.h>
#include <linux/openat2.h>
#include <linux/socket.h>
#include <linux/stat.h>

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

// What masked paths show; only these mounts of it remain.
#define EMPTY_FILE "/.empty"
#define EMPTY_DIR "/.none"

static int new_root; // a descriptor
static int next_staged;

// below is the path of what will be at path, from the new root, in which this
// process is.
static const char *below(const char *path) { return path + (*path == '/'); }

// find_folder opens the folder of a path's first n bytes, where it is there.
static long find_folder(const char *path, size_t n) {
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, .resolve = BENEATH};
	char whole[MAX_PATH];
	if (n + 2 > sizeof whole)
		return -ENAMETOOLONG;
	*whole = '.';
	memcpy(whole + 1, path, n); // "./usr/lib": it begins with a slash, or is empty
	whole[n + 1] = 0;
	return sys(__NR_openat2, new_root, whole, &how, sizeof how);
}

// make_folder opens it component by component, making what is missing.
static long make_folder(const char *path, size_t n) {
	const char *end = path + n;
	long fd = find_folder("", 0);
	while (path < end && fd >= 0) {
		char name[256];
		struct line l = LINE(name);
		for (; path < end && *path != '/'; path++)
			add(&l, (char[]){*path, 0});
		path++;
		if (l.used == 0)
			continue;
		sys(__NR_mkdirat, fd, name, 0755); // or the open fails
		long next = l.cut ? -ENAMETOOLONG : open_at((int)fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		shut(fd);
		fd = next;
	}
	return fd;
}

static long descend(const char *path, size_t n) {
	long fd = *path == '/' || n == 0 ? find_folder(path, n) : -ENOENT;
	return fd >= 0 ? fd : make_folder(path, n);
}

static long parent(const char *path, const char **name) {
	size_t n = length(path);
	while (n > 0 && path[n - 1] != '/')
		n--;
	*name = path + n;
	return descend(path, n > 0 ? n - 1 : 0);
}

static void make_link(struct link l) {
	const char *name;
	int dir = (int)must("link ", l.path, parent(l.path, &name));
	must("link ", l.path, sys(__NR_symlinkat, l.target, dir, name));
	shut(dir);
}

static void make_file(struct file f) {
	const char *name;
	int dir = (int)must("make ", f.path, parent(f.path, &name));
	long fd = must("make ", f.path, open_at(dir, name, O_CREAT | O_EXCL | O_WRONLY, f.secret ? 0400 : 0444));
	long n = must("write ", f.path, sys(__NR_write, fd, f.content, f.size));
	must("write ", f.path, (u64)n < f.size ? -ENOSPC : 0);
	shut(fd);
	shut(dir);
}

// point opens the mount point, a folder or a file.
static long point(const char *path, bool folder) {
	if (folder)
		return descend(path, length(path));
	const char *name;
	long dir = parent(path, &name);
	if (dir < 0)
		return dir;
	long fd = open_at((int)dir, name, O_PATH | O_NOFOLLOW, 0);
	if (fd == -ENOENT)
		fd = open_at((int)dir, name, O_CREAT | O_EXCL | O_NOFOLLOW, 0444);
	shut(dir);
	return fd;
}

static long restrict_mount(int tree, const struct mount *m) {
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID};
	attr.attr_set |= m->write ? 0 : MOUNT_ATTR_RDONLY;
	attr.attr_set |= m->noexec ? MOUNT_ATTR_NOEXEC : 0;
	attr.attr_set |= m->device ? 0 : MOUNT_ATTR_NODEV;
	return sys(__NR_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr);
}

static long move_onto(int tree, int at) {
	return sys(__NR_move_mount, tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

// attach moves a cloned tree to its place. What the call was granted may be in the
// way of that, and of nothing else: the step says which it was.
static void attach(int tree, const struct mount *m, const char *step) {
	struct stat st;
	must("look at ", m->source, sys(__NR_fstat, tree, &st));
	int at = (int)must(step, m->target, point(m->target, is_folder(&st)));
	must(step, m->target, move_onto(tree, at));
	shut(at);
	shut(tree);
}

// bind clones a tree that anybody can reach.
static void bind_tree(const struct mount *m) {
	long tree = sys(__NR_open_tree, AT_FDCWD, m->source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (m->optional && (tree == -ENOENT || tree == -ENOTDIR))
		return;
	must("bind ", m->source, tree);
	must("restrict ", m->source, restrict_mount((int)tree, m));
	attach((int)tree, m, "mount ");
}

static void mount_new(const struct mount *m, const char *kind, unsigned flags, const char *data) {
	char what[MAX_PATH];
	struct line l = LINE(what);
	add(&l, kind);
	add(&l, " at ");
	add(&l, m->target);
	shut(must("mount ", what, descend(m->target, length(m->target))));
	flags |= PLAIN_MOUNT | (m->noexec ? MS_NOEXEC : 0);
	long err = sys(__NR_mount, kind, below(m->target), kind, flags, data);
	must("mount ", what, m->optional && err == -ENODEV ? 0 : err);
}

static void mount_tmpfs(const struct mount *m) {
	char data[128];
	struct line l = LINE(data);
	add(&l, "mode=");
	add_number(&l, (u64)m->mode, 8);
	add(&l, ",size=");
	add_number(&l, (u64)m->bytes, 10);
	add(&l, ",nr_inodes=");
	add_number(&l, (u64)m->inodes, 10);
	mount_new(m, "tmpfs", 0, data);
}

// find opens a mount's target, makes nothing and follows nothing. Another call
// may have moved what the host has found there: then nothing starts.
static long find(const struct mount *m, struct stat *st) {
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = BENEATH};
	long fd = sys(__NR_openat2, new_root, m->target + (*m->target == '/'), &how, sizeof how);
	if (fd < 0)
		return fd;
	long err = sys(__NR_fstat, fd, st);
	if (err >= 0 && ((i64)st->st_dev != m->on_device || (i64)st->st_ino != m->on_inode))
		err = -ESTALE;
	return err < 0 ? err : fd;
}

// empty_folder is a file system of its own: a folder that was removed could not
// be listed.
static long empty_folder(void) {
	static const char settings[][2][12] = {{"size", "4k"}, {"nr_inodes", "2"}, {"mode", "0555"}};
	long fs = sys(__NR_fsopen, "tmpfs", FSOPEN_CLOEXEC), err = fs;
	for (size_t i = 0; i < COUNT(settings) && err >= 0; i++)
		err = sys(__NR_fsconfig, fs, FSCONFIG_SET_STRING, settings[i][0], settings[i][1], 0);
	if (err >= 0)
		err = sys(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (err >= 0)
		err = sys(__NR_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	shut(fs);
	return err;
}

// shown is what is seen at a protected place from now on, not mounted yet.
static long shown(const struct mount *m, int at, const struct stat *st) {
	const unsigned clone = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
	if (m->kind == MOUNT_FIXED)
		return sys(__NR_open_tree, at, "", clone | AT_EMPTY_PATH | AT_RECURSIVE);
	if (is_folder(st))
		return empty_folder();
	return sys(__NR_open_tree, new_root, EMPTY_FILE + 1, clone | AT_SYMLINK_NOFOLLOW);
}

// protect covers, makes read-only or keeps in its place what the host has found at
// a path below a granted folder.
static void protect(const struct mount *m) {
	struct stat st;
	int at = (int)must("protect ", m->target, find(m, &st));
	int tree = (int)must("protect ", m->target, shown(m, at, &st));
	must("protect ", m->target, restrict_mount(tree, m));
	must("protect ", m->target, move_onto(tree, at));
	shut(tree);
	shut(at);
}

static void add_mount(const struct mount *m) {
	switch ((enum mount_kind)m->kind) {
	case MOUNT_TMPFS:
		mount_tmpfs(m);
		return;
	case MOUNT_PROC:
		mount_new(m, "proc", 0, "hidepid=invisible");
		return;
	case MOUNT_MQUEUE:
		mount_new(m, "mqueue", MS_RDONLY, NULL);
		return;
	case MOUNT_STAGED:
		attach(next_staged++, m, "show ");
		return;
	case MOUNT_BIND:
		bind_tree(m);
		return;
	case MOUNT_MASK:
	case MOUNT_FIXED:
		protect(m);
		return;
	}
	must("mount ", m->target, -EINVAL);
}

// cover mounts what is empty over target, which nobody but the kernel has made.
static long cover(const char *empty, const char *target) {
	long tree = sys(__NR_open_tree, new_root, empty + 1, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return tree;
	long err = restrict_mount((int)tree, &(struct mount){.noexec = true});
	if (err >= 0)
		err = sys(__NR_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
	shut(tree);
	return err;
}

// cover_alike mounts once more what has covered another path: it has the right
// attributes, and that takes a single system call.
static long cover_alike(const char *covered, const char *target) {
	return sys(__NR_mount, covered, target, NULL, MS_BIND, NULL);
}

static void mask(const char *path) {
	static const char *covered[2]; // a file and a folder
	struct stat st;
	const char *target = below(path);
	long err = sys(__NR_newfstatat, AT_FDCWD, target, &st, AT_SYMLINK_NOFOLLOW);
	if (err == -ENOENT)
		return;
	must("look at ", path, err);
	must("mask ", path, is_kind(&st, 0120000) ? -ELOOP : 0);
	const char **like = &covered[is_folder(&st)];
	if (*like != NULL)
		err = cover_alike(*like, target);
	else
		err = cover(is_folder(&st) ? EMPTY_DIR : EMPTY_FILE, target);
	must("mask ", path, err);
	*like = target;
}

static void limit_sysctl(struct file f) {
	long err = overwrite(AT_FDCWD, below(f.path), f.content);
	must("limit ", f.path, err == -ENOENT ? 0 : err);
}

static void fix(const char *path) {
	bind_tree(&(struct mount){.source = below(path), .target = path, .noexec = true, .optional = true});
}

// guard_proc hides parts of the new /proc and makes others read-only. What this
// kernel doesn't have needs no guard.
static void guard_proc(const struct root *root) {
	EACH(f, root->sysctls, read_file)
		limit_sysctl(f.it);
	EACH(path, root->read_only, text)
		fix(path.it);
	EACH(path, root->masked, text)
		mask(path.it);
	must("remove ", EMPTY_FILE, sys(__NR_unlinkat, new_root, EMPTY_FILE + 1, 0));
	must("remove ", EMPTY_DIR, sys(__NR_unlinkat, new_root, EMPTY_DIR + 1, 0x200));
}

// The new root covers one of these folders of the host's while it is built.
// Nothing below them is needed for that.
static void mount_root(const struct root *root) {
	static const char scaffolds[][8] = {"/tmp", "/mnt", "/var", "/home"};
	char data[96];
	struct line l = LINE(data);
	add(&l, "mode=0755,nr_inodes=4096,size=");
	add_number(&l, (u64)root->bytes, 10);
	const char *scaffold = "";
	long err = -ENOENT;
	for (size_t i = 0; i < COUNT(scaffolds) && err < 0; i++) {
		scaffold = scaffolds[i];
		long folder = open_at(AT_FDCWD, scaffold, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (folder < 0) // a link, for instance
			continue;
		shut(folder);
		err = sys(__NR_mount, "tmpfs", scaffold, "tmpfs", PLAIN_MOUNT, data);
	}
	must("mount the new root", "", err);
	new_root = (int)must("open the new root", "", open_at(AT_FDCWD, scaffold, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0));
	must("enter the new root", "", sys(__NR_fchdir, new_root));
}

// The old root lies on top of the new one. It is detached at once, but umount2
// returns only after a grace period of all processors (namespace_unlock in
// fs/namespace.c), for tens of milliseconds where they are busy: nothing but a
// thread of its own waits for that. It ends with its only system call.
#define OLD_ROOT "/.."

enum { NOT_RETURNED = 1 };
static volatile long left = NOT_RETURNED;

static void detach(void *unused) {
	(void)unused;
	left = sys(__NR_umount2, OLD_ROOT, 2);
	for (;;)
		sys(__NR_exit, 0);
}

static long mount_id(const char *path, u64 *id) {
	struct statx st;
	long err = sys(__NR_statx, AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_MNT_ID, &st);
	if (err >= 0 && (st.stx_mask & STATX_MNT_ID) == 0)
		err = -ENOSYS;
	*id = st.stx_mnt_id;
	return err;
}

// root_is_covered says whether something is mounted on the root.
static long root_is_covered(void) {
	u64 bottom, top;
	long err = mount_id("/", &bottom);
	if (err >= 0)
		err = mount_id(OLD_ROOT, &top);
	return err < 0 ? err : top != bottom;
}

static void leave_old_root(void) {
	static u8 stack[2048] __attribute__((aligned(16)));
	if (spawn_thread(stack + sizeof stack, detach) < 0)
		left = sys(__NR_umount2, OLD_ROOT, 2);
}

void await_root(void) {
	for (;;) {
		long result = left, covered = must("leave the old root", "", root_is_covered());
		if (covered == 0)
			return;
		if (result <= 0)
			must("leave the old root", "", result < 0 ? result : -EBUSY);
		struct __kernel_timespec pause = {0, 20000};
		sys(__NR_ppoll, NULL, 0, &pause, NULL, 0);
	}
}

// enter makes the new root the only one, as soon as await_root returns. Its own
// tmpfs becomes read-only.
static void enter(void) {
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	must("make the root read-only", "", sys(__NR_mount_setattr, new_root, "", AT_EMPTY_PATH, &attr, sizeof attr));
	must("pivot to the new root", "", sys(__NR_pivot_root, ".", "."));
	must("go to the root", "", sys(__NR_chdir, "/"));
	leave_old_root();
	shut(new_root);
}

void build_root(const struct options *o) {
	const struct root *root = &o->root;
	next_staged = FIRST_FD + o->kill + (int)(o->extra + o->held);
	mount_root(root);
	EACH(l, root->links, read_link)
		make_link(l.it);
	EACH(f, root->files, read_file)
		make_file(f.it);
	make_file((struct file){.path = EMPTY_FILE, .content = ""});
	must("make ", EMPTY_DIR, sys(__NR_mkdirat, new_root, EMPTY_DIR + 1, 0555));
	EACH(m, root->mounts, read_mount)
		add_mount(&m.it);
	guard_proc(root);
	enter();
}
