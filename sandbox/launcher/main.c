// The launcher is PID 1 of every call's PID namespace. It builds the tool's
// surroundings, starts the tool, reaps orphans, and ends the whole tree when its
// host is gone or its own timer runs out. The same program is the zygote of
// which launchers are forks, the tool of the trial call by which a host learns
// what it offers, and the adapter that makes a tool of a plain command.
//
// It is built for a hostile tenant: after the tool's start it allocates nothing,
// has one thread, and never reads a byte of the tool's. The host embeds it (make
// launcher builds it) and runs it from a sealed memfd.
#include "launcher.h"

static char *title;
static size_t title_size;

// set_title writes over the arguments, which are one after the other.
void set_title(const char *name) {
	if (title_size == 0)
		return;
	memset(title, 0, title_size);
	add(&(struct line){.at = title, .size = title_size}, name);
	sys(__NR_prctl, PR_SET_NAME, name, 0, 0, 0);
}

int program(int argc, char **argv, char **envp) {
	static const char by_hand[] = "toolhost-launcher: started by toolhost, not by hand\n";
	if (argc > 1) {
		title = argv[0];
		title_size = (size_t)(argv[argc - 1] + length(argv[argc - 1]) + 1 - argv[0]);
		if (equal(argv[1], "zygote"))
			zygote(argc > 2 && equal(argv[2], "await-map"), argv, envp);
		if (equal(argv[1], "trial"))
			return trial(argv + 2);
		if (equal(argv[1], "command"))
			return command_adapter(argv + 2, envp);
	}
	sys(__NR_write, 2, by_hand, sizeof by_hand - 1);
	return 2;
}
