package command

import (
	"strings"
	"testing"
)

func TestUnquoted(t *testing.T) {
	params := []Param{{Name: "a"}, {Name: "b", Type: TypeInteger}, {Name: "list", Type: TypeArray}}
	for script, want := range map[string]string{
		`echo "$a" "${a}" "x $b y" "$@" "$1"`:  "",
		`echo '$a' \$a $other $ab $# $$ $? $`:  "",
		`echo $a`:                              "$a",
		`echo ${a:-x} "$a"`:                    "$a",
		`echo "x"$b"y"`:                        "$b",
		`rm $@ $*`:                             "$@ $*",
		`for i in $1; do echo "$i"; done`:      "$1",
		`echo "$(cat "$a")"`:                   "",
		`echo "$(cat $a)"`:                     "$a",
		`echo "$( (cat "$a"); id )" $b`:        "$b",
		"echo \"`cat $a`\"":                    "$a",
		"echo `cat \"$a\"` \"$b\"":             "",
		`# don't use $a` + "\necho \"$a\"":     "",
		`echo x#'$a' "$a"`:                     "",
		`echo it\'s $a`:                        "$a",
		`echo "a\"" $a`:                        "$a",
		`echo "it's" "$a"`:                     "",
		"cat <<E\nit's $a\nE\necho $b":         "$b",
		"cat <<-'E' | x\n\"\n\tE\necho \"$b\"": "",
		`cat <<<"$a"`:                          "",
		`echo "${x:-"$"}" "$a"`:                "",
		`#`:                                    "",
		`echo "$`:                              "",
		`echo \`:                               "",
		`case "$a" in x) echo "$b";; esac`:     "",
	} {
		if got := strings.Join(Spec{Argv: []string{script}, Shell: true, Params: params}.Unquoted(), " "); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if got := (Spec{Argv: []string{"echo $@ $1"}, Shell: true}).Unquoted(); got != nil {
		t.Errorf("without an array: %q", got)
	}
}

func FuzzUnquoted(f *testing.F) {
	f.Add("echo \"$(cat <<E\n`$a` 'x' # y\nE\n)\" \\")
	f.Fuzz(func(_ *testing.T, script string) {
		Spec{Argv: []string{script}, Shell: true, Params: []Param{{Name: "a"}}}.Unquoted()
	})
}
