package command

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// program is one that runs code from its command line: where the code stands
// there.
type program struct {
	// flags are options with the code in the next word, or behind "="; letters
	// are those that do so at the end of a cluster (-Sc).
	flags   []string
	letters string
	// takes are options with a value in the next word; pairs with two.
	takes, pairs []string
	// rest are letters whose value, if any, is the rest of the word.
	rest string
	// last are letters behind which nothing is the program's own: python -m.
	last string
	// switches are long options without a value.
	switches []string
	// files are options that bring the code from elsewhere.
	files []string
	// operands says which operands are code, from number first on.
	operands operandRule
	first    int
	// never are options whose value is code, or runs or loads some, and may hold
	// no value of a call at all: -M of perl, --pre of rg. early are those that
	// are so before the first operand only: git -c.
	never, early []string
	// verbs are literal operands that stand before the code: deno eval.
	verbs []string
	// permutes: options may follow operands.
	permutes bool
	// always: the code option takes the next word even if that begins with "-".
	// Only where a test has seen it.
	always bool
	// ends: a -- behind the code option is the end of options. So it is to python,
	// which hands it to the code, for what follows is the code's alone; but not to
	// a shell, whose code hands its words to other programs.
	ends bool
	// parses are letters by which the program reads words behind that -- as
	// switches after all: perl -s.
	parses string
	// remedy is how else to hand over a value.
	remedy string
}

type operandRule int

const (
	noOperand    operandRule = iota
	flaggedFirst             // the first one, if a letter said so: sh -c
	firstOperand             // the first one: awk, jq
	eachOperand              // each by itself: sqlite3
	allOperands              // all, joined with spaces: ssh
)

const (
	positional = `hand the value over as a word behind the code, and read it there as `
	byStdin    = "hand the value over on stdin"
	// fixedOption is for programs that take values well enough elsewhere.
	fixedOption = "write the option without a placeholder"
)

func shellLike(flags ...string) program {
	return program{
		letters: "c", operands: flaggedFirst, flags: flags,
		takes:    []string{"-o", "+o", "-O", "+O", "--rcfile", "--init-file"},
		switches: []string{"--login", "--posix", "--norc", "--noprofile", "--noediting", "--restricted", "--verbose"},
		remedy:   `hand the value over as a word behind the code and a name, and read it there as "$1"`,
	}
}

func alwaysCode(p program) program {
	p.always = true
	return p
}

func dashEnds(p program) program {
	p.ends = true
	return p
}

// programs are known by the names of programName.
var programs = map[string]program{
	"sh": shellLike(), "bash": shellLike(), "dash": shellLike(), "ash": shellLike(), "zsh": shellLike(), "ksh": shellLike(),
	"mksh": shellLike(), "yash": shellLike(), "rbash": shellLike(), "csh": shellLike(), "tcsh": shellLike(),
	"fish": shellLike("--command", "-C", "--init-command"),
	"pwsh": powerShell, "powershell": powerShell,
	"python": dashEnds(alwaysCode(pythonLike)), "pypy": dashEnds(pythonLike), "ipython": pythonLike, "micropython": pythonLike,
	"node": dashEnds(nodeLike), "nodejs": dashEnds(nodeLike), "bun": nodeLike, "tsx": nodeLike, "ts-node": nodeLike,
	"deno": {operands: firstOperand, verbs: []string{"eval", "repl"}, remedy: positional + "Deno.args"},
	"perl": {
		never:   []string{"-M", "-m", "-F", "-d"},
		letters: "eE", rest: "iDCxV", takes: []string{"-I"}, always: true, ends: true, parses: "s",
		remedy: positional + "$ARGV[0]",
	},
	"ruby": {letters: "e", ends: true, parses: "s", rest: "iFKTWx", takes: []string{"-I", "-C", "-E"}, never: []string{"-r", "--require"}, remedy: positional + "ARGV[0]"},
	"php": {
		letters: "rBRE", ends: true, flags: []string{"--run", "--process-begin", "--process-code", "--process-end"},
		takes: []string{"-c", "-f", "-t", "-z"}, never: []string{"-d", "--define"}, remedy: positional + "$argv[1]",
	},
	"lua": luaLike, "luajit": luaLike,
	"julia": {letters: "eE", flags: []string{"--eval", "--print"}, takes: []string{"-J", "-p", "-t", "-L"}, remedy: positional + "ARGS[1]"},
	"r":     {letters: "e", permutes: true, remedy: positional + "commandArgs(TRUE)"}, "rscript": {letters: "e", permutes: true, remedy: positional + "commandArgs(TRUE)"},
	"awk": awkLike, "gawk": awkLike, "mawk": awkLike, "nawk": awkLike, "goawk": awkLike, "original-awk": awkLike,
	"sed": sedLike, "gsed": sedLike,
	"jq": jqLike, "gojq": jqLike, "jaq": jqLike,
	"yq":      {operands: firstOperand, verbs: []string{"eval", "e", "eval-all", "ea"}, flags: []string{"--expression"}, remedy: byStdin},
	"sqlite":  sqliteLike,
	"duckdb":  sqliteLike,
	"psql":    {letters: "c", flags: []string{"--command"}, takes: psqlTakes, permutes: true, remedy: "write -v name={name} before it, and :'name' in SQL from stdin"},
	"mysql":   {letters: "e", flags: []string{"--execute"}, takes: []string{"-h", "-P", "-u", "-D"}, rest: "p", permutes: true, remedy: byStdin},
	"mariadb": {letters: "e", flags: []string{"--execute"}, takes: []string{"-h", "-P", "-u", "-D"}, rest: "p", permutes: true, remedy: byStdin},
	"mongosh": {flags: []string{"--eval"}, permutes: true, remedy: byStdin},
	"vim":     editorLike, "vi": editorLike, "nvim": editorLike,
	// The ones below hand their words to a shell.
	"ssh": {
		operands: allOperands, first: 1, remedy: byStdin,
		takes: []string{"-B", "-b", "-c", "-D", "-E", "-e", "-I", "-i", "-J", "-L", "-l", "-m", "-O", "-p", "-Q", "-R", "-S", "-W", "-w"},
		never: []string{"-o", "-F"},
	},
	"watch":    {operands: allOperands, takes: []string{"-n", "-q", "--interval"}, remedy: byStdin},
	"parallel": {operands: allOperands, takes: []string{"-j", "-a", "-I", "--jobs", "--arg-file"}, remedy: byStdin},
	"eval":     {operands: allOperands, remedy: byStdin},
	"su":       {letters: "c", flags: []string{"--command"}, takes: []string{"-s", "-g", "-G", "-w"}, permutes: true, remedy: byStdin},
	"runuser":  {letters: "c", flags: []string{"--command"}, takes: []string{"-s", "-g", "-G", "-w", "-u"}, permutes: true, remedy: byStdin},
	"script":   {letters: "c", flags: []string{"--command"}, permutes: true, remedy: byStdin},
	"flock":    {letters: "c", flags: []string{"--command"}, takes: []string{"-w", "-E"}, permutes: true, remedy: byStdin},
	"env":      {letters: "S", flags: []string{"--split-string"}, takes: []string{"-u", "-C"}, remedy: "write the words one by one"},
	"make":     makeLike, "gmake": makeLike,
	// The ones below run other programs if an option says so.
	"tar": tarLike, "gtar": tarLike, "bsdtar": tarLike,
	"git": {
		permutes: true, takes: []string{"-C", "--git-dir", "--work-tree", "--namespace"}, early: []string{"-c"},
		never:  []string{"--config-env", "--exec-path", "--exec", "--upload-pack", "--receive-pack", "--extcmd", "--open-files-in-pager"},
		remedy: fixedOption,
	},
	"rg": {permutes: true, never: []string{"--pre", "--hostname-bin"}, remedy: fixedOption},
	"fd": fdLike, "fdfind": fdLike,
	"find":    {permutes: true, never: []string{"-exec", "-execdir", "-ok", "-okdir"}, remedy: fixedOption},
	"gdb":     {permutes: true, never: []string{"-ex", "--ex", "-iex", "--iex", "-eval-command", "--eval-command", "-init-eval-command", "--init-eval-command", "-x", "--command", "-ix"}, remedy: fixedOption},
	"lldb":    {permutes: true, never: []string{"-o", "-O", "-k", "--one-line", "--one-line-before-file", "--one-line-on-crash", "-s", "-S", "--source"}, remedy: fixedOption},
	"scp":     {permutes: true, takes: []string{"-i", "-P", "-l", "-c", "-J"}, never: []string{"-o", "-S", "-F"}, remedy: fixedOption},
	"sftp":    {permutes: true, takes: []string{"-i", "-P", "-l", "-c", "-J", "-b"}, never: []string{"-o", "-S", "-F"}, remedy: fixedOption},
	"rsync":   {permutes: true, never: []string{"-e", "--rsh", "--rsync-path"}, remedy: fixedOption},
	"sort":    {permutes: true, never: []string{"--compress-program"}, remedy: fixedOption},
	"split":   {permutes: true, never: []string{"--filter"}, remedy: fixedOption},
	"wget":    {permutes: true, never: []string{"-e", "--execute", "--use-askpass"}, takes: []string{"-o", "-O", "-a", "-i", "-P", "-U", "-t", "-T"}, remedy: fixedOption},
	"zip":     {permutes: true, never: []string{"-TT", "--unzip-command"}, remedy: fixedOption},
	"tcpdump": {permutes: true, never: []string{"-z"}, takes: []string{"-i", "-w", "-r", "-c", "-s"}, remedy: fixedOption},
	"man":     {permutes: true, never: []string{"-P", "--pager", "-H", "--html"}, remedy: fixedOption},
}

var (
	makeLike = program{
		operands: eachOperand, permutes: true, never: []string{"--eval", "-E"}, takes: []string{"-C", "-f", "-I", "-o", "-W"},
		remedy: "let make read the value from the environment",
	}
	tarLike = program{
		permutes: true, switches: []string{"--checkpoint", "--to-stdout"}, takes: []string{"-f", "-C", "-T", "-X", "-b", "-g", "-K", "-N", "-V"}, remedy: fixedOption,
		never: []string{"--checkpoint-action", "--to-command", "-I", "--use-compress-program", "-F", "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"},
	}
	fdLike     = program{permutes: true, never: []string{"-x", "-X", "--exec", "--exec-batch"}, takes: []string{"-t", "-e", "-d", "-E", "-S", "-c", "-j"}, remedy: fixedOption}
	pythonLike = program{letters: "c", takes: []string{"-W", "-X", "-Q", "--check-hash-based-pycs"}, last: "m", remedy: positional + "sys.argv[1]"}
	powerShell = program{
		flags: []string{"-c", "-Command", "-command", "-EncodedCommand"}, operands: allOperands, files: []string{"-File", "-file", "-f"}, remedy: byStdin,
	}
	nodeLike = program{
		flags: []string{"-e", "--eval", "-p", "--print", "-pe"}, remedy: positional + "process.argv[1]",
		takes: []string{"-C", "--conditions", "--env-file"},
		never: []string{"-r", "--require", "--import", "--loader", "--experimental-loader", "--preload"},
	}
	luaLike = program{letters: "e", never: []string{"-l"}, permutes: true, remedy: positional + "arg[1]"}
	awkLike = program{
		operands: firstOperand, files: []string{"-f", "--file", "-E", "--exec"}, flags: []string{"-e", "--source"},
		takes: []string{"-F", "-v", "-i", "-l", "--assign", "--field-separator"}, switches: []string{"--posix", "--csv", "--re-interval", "--sandbox"},
		remedy: "write -v name={name} before the program, and name in it",
	}
	sedLike = program{
		letters: "e", flags: []string{"--expression"}, files: []string{"-f", "--file"}, operands: firstOperand, rest: "i",
		takes: []string{"-l", "--line-length"}, remedy: "use a program that can be told values, such as awk -v",
		switches: []string{"--quiet", "--silent", "--regexp-extended", "--null-data", "--separate", "--posix", "--sandbox", "--unbuffered", "--in-place"},
	}
	jqLike = program{
		operands: firstOperand, files: []string{"-f", "--from-file"}, takes: []string{"-L", "--indent"},
		pairs: []string{"--arg", "--argjson", "--slurpfile", "--rawfile"},
		switches: []string{
			"--null-input", "--raw-input", "--slurp", "--compact-output", "--raw-output", "--join-output", "--ascii-output", "--raw-output0",
			"--sort-keys", "--color-output", "--monochrome-output", "--tab", "--exit-status", "--stream", "--seq", "--unbuffered", "--args", "--jsonargs",
		},
		remedy: `write --arg name {name} before the filter, and $name in it`,
	}
	sqliteLike = program{
		operands: eachOperand, first: 1, flags: []string{"-cmd", "--cmd", "-c", "-s"}, permutes: true,
		takes:  []string{"-separator", "-newline", "-nullvalue", "-init", "-maxsize", "-mmap", "-vfs", "--separator", "--nullvalue", "--init"},
		remedy: "let the whole statement be the parameter, on stdin or as the argument",
	}
	psqlTakes  = []string{"-d", "-f", "-v", "-L", "-o", "-h", "-p", "-U", "-F", "-P", "-R", "-T", "--dbname", "--file", "--set", "--variable", "--host", "--port", "--username"}
	editorLike = program{flags: []string{"-c", "--cmd"}, permutes: true, remedy: byStdin}
)

// anywhere are the interpreters that are looked for behind every command, since
// a command may run another that no table knows: find -exec sh -c.
var anywhere = []string{
	"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "pwsh", "powershell", "python", "pypy", "perl", "ruby", "php", "node", "nodejs",
}

// wrapper is a program that runs the command that its words end with.
type wrapper struct {
	takes    []string
	operands int  // those before the command
	assigns  bool // NAME=value may stand before it
}

var wrappers = map[string]wrapper{
	"env":  {takes: []string{"-u", "--unset", "-C", "--chdir", "-a", "--argv0"}, assigns: true},
	"sudo": {takes: []string{"-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group"}, assigns: true},
	"doas": {takes: []string{"-u", "-C"}},
	"nice": {takes: []string{"-n", "--adjustment"}}, "ionice": {takes: []string{"-c", "-n", "--class", "--classdata"}},
	"timeout": {takes: []string{"-k", "-s", "--kill-after", "--signal"}, operands: 1},
	"stdbuf":  {takes: []string{"-i", "-o", "-e", "--input", "--output", "--error"}},
	"nohup":   {}, "setsid": {}, "busybox": {}, "toybox": {}, "command": {}, "exec": {}, "unbuffer": {}, "catchsegv": {}, "proxychains": {},
	"chroot": {operands: 1}, "taskset": {operands: 1}, "chrt": {operands: 1}, "faketime": {operands: 1}, "flock": {takes: []string{"-w", "-E"}, operands: 1},
	"time":    {takes: []string{"-f", "-o", "--format", "--output"}},
	"xargs":   {takes: []string{"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter", "--max-args", "--max-procs"}},
	"unshare": {takes: []string{"-S", "-G", "-R", "-w"}}, "nsenter": {takes: []string{"-t", "-S", "-G", "--target"}},
	"strace":      {takes: []string{"-o", "-e", "-p", "-s", "-u", "-E", "-a", "-I", "-O", "-S", "-P", "-b", "-X"}},
	"systemd-run": {takes: []string{"-p", "-u", "-M", "-E", "-H", "--unit", "--property", "--setenv", "--slice"}},
	"setpriv":     {}, "prlimit": {}, "dbus-run-session": {}, "xvfb-run": {takes: []string{"-e", "-f", "-n", "-p", "-s", "-w"}},
}

// passers hand what follows -- to another program, options included.
var passers = []string{
	"npm", "npx", "pnpm", "yarn", "bun", "bunx", "cargo", "go", "dotnet", "uv", "uvx", "poetry", "pipx", "pdm", "hatch", "nix", "kubectl", "oc",
	"docker", "podman", "bwrap", "firejail", "ssh", "bazel", "perf", "valgrind", "ltrace", "gdb", "find", "toolhost", "tmux", "screen",
}

// versionForm is what distributions put behind a program's name: python3.12.
var versionForm = regexp.MustCompile(`[-_.]?[0-9]+(\.[0-9]+)*[a-z]?$`)

// programName is a program's name without folder and version.
func programName(word string) string {
	name := strings.TrimSuffix(strings.ToLower(path.Base(word)), ".exe")
	return versionForm.ReplaceAllString(name, "")
}

// valueWords is how many words after an option are its value: a long option as
// it stands, or the first letter of a cluster that takes one and ends it.
func valueWords(option string, takes, pairs []string) int {
	switch {
	case slices.Contains(pairs, option):
		return 2
	case slices.Contains(takes, option):
		return 1
	case strings.HasPrefix(option, "--"):
		return 0
	}
	for i := 1; i < len(option); i++ {
		if slices.Contains(takes, option[:1]+option[i:i+1]) {
			return min(1, max(0, i+2-len(option)))
		}
	}
	return 0
}
