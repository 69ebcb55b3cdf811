#!/usr/bin/env bash
# Four calls as a newcomer would type them: one that ends well, one that is cut
# short and keeps what it had found, one whose tool will not end, and one that
# tries to look around.
# `make demo` builds bin/ and runs this. It fails if an outcome is not the
# expected one.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly exit_ok=0 exit_failed=1 exit_timeout=124
bold='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
	bold=$'\e[1m' plain=$'\e[0m'
fi
matches=$(mktemp)
trap 'rm -f "$matches"' EXIT

title() { printf '\n%s%s%s\n\n' "$bold" "$*" "$plain"; }

die() {
	echo "demo: $*" >&2
	exit 1
}

# show COMMAND_LINE runs a command line after printing it, and leaves its exit
# status in $status.
show() {
	echo "\$ $1"
	status=0
	eval "$1" || status=$?
}

# expect STATUS complains unless the last command line ended with it.
expect() {
	((status == $1)) || die "exit status $status, want $1"
}

# left counts the processes named stubborn, on the whole machine.
left() {
	{ grep -lx stubborn /proc/[0-9]*/comm 2>/dev/null || true; } | wc -l
}

title '1. A call that ends well'
show 'bin/toolhost run --read "$(go env GOROOT)/src" bin/search pattern='\''^func Dial\w*\('\'' path="$(go env GOROOT)/src" include='\''*.go'\'
expect $exit_ok

title '2. A call whose time is over: what it had found is kept'
kept=0
for timeout in 300ms 1s 3s; do # on a busy machine the first may be over before the tool runs
	((kept == 0)) || break
	show 'bin/toolhost run --timeout '$timeout' --read "$(go env GOROOT)/src" bin/search pattern=error path="$(go env GOROOT)/src" > "$matches"'
	expect $exit_timeout
	kept=$(wc -l <"$matches")
done
((kept > 0)) || die 'no partial match was kept'
echo "$kept matches were kept, the last of them:"
tail -n 1 "$matches"

title '3. A tool that ignores every signal and leaves 50 processes'
show 'bin/toolhost run --timeout 1s --grace 500ms ./bin/stubborn'
expect $exit_timeout
remaining=$(left)
echo "processes named stubborn that are left: $remaining"
((remaining == 0)) || die "$remaining processes have survived"

title '4. What an untrusted command sees of this machine, its users and its network'
show 'bin/toolhost exec -- bash -c "whoami; ls ~ '"$HOME"'; echo > /dev/tcp/192.0.2.1/80"'
expect $exit_failed
