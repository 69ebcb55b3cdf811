# What only bash does: process substitution, arrays, coprocesses, its own redirections.
set -euo pipefail
diff <(echo same) <(echo same)
words=(one two three)
[[ ${#words[@]} == 3 && "${words[*]^^}" == "ONE TWO THREE" ]]
coproc cat
echo there >&"${COPROC[1]}"
read -r answer <&"${COPROC[0]}"
[[ $answer == there ]]
exec {copy}>&"${COPROC[1]}" {copy}>&-
read -rt 60 line <<<"here"
[[ $line == here ]]
mapfile -t lines < <(printf '%s\n' a b c)
[[ ${lines[2]} == c ]]
echo ok
