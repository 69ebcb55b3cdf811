// Children that become another program, and threads.
#include "launcher.h"
#include <asm/signal.h>
#include <linux/wait.h>

// execute is the child, which shares this process's memory until it has become
// another program (vfork(2)).
static void execute(void *arg) {
	struct program *p = arg;
	sys(__NR_setpgid, 0, 0);
	for (int i = 0; i < p->files && p->err >= 0; i++)
		p->err = sys(__NR_dup3, p->from + i, p->to + i, 0);
	if (p->dir != NULL && p->err >= 0)
		p->err = sys(__NR_chdir, p->dir);
	if (p->before != NULL)
		p->before();
	block_signals(0);
	if (p->err >= 0)
		p->err = sys(__NR_execve, p->path, p->argv, p->envp);
	leave(EXIT_SETUP);
}

long start_program(struct program *p) {
	static u8 stack[4096] __attribute__((aligned(16)));
	p->err = 0;
	long pid = spawn(CLONE_VM | CLONE_VFORK | SIGCHLD, stack + sizeof stack, execute, p);
	if (pid < 0 || p->err >= 0)
		return pid;
	sys(__NR_wait4, pid, NULL, __WALL, NULL);
	return p->err;
}

long spawn_thread(void *stack, void (*run)(void *)) {
	return spawn(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, stack, run, NULL);
}
