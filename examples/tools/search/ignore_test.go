package main

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestIgnore(t *testing.T) {
	for name, test := range map[string]struct{ files, want string }{
		"by name at any depth":        {"a.log b/a.log b/c : *.log", "b/c"},
		"anchored":                    {"a b/a : /a", "b/a"},
		"anchored by a middle slash":  {"b/a c/b/a : b/a", "c/b/a"},
		"folders only":                {"a/x b/a : a/", "b/a"},
		"taken back in":               {"a.log keep.log : *.log !keep.log", "keep.log"},
		"the last one wins":           {"keep.log : !keep.log *.log", ""},
		"not below an excluded one":   {"a/keep : a !a/keep", ""},
		"all but one folder":          {"a/x b/x b/y/z : /* !/b", "b/x b/y/z"},
		"only some names":             {"a.c a.h d/a.c d/a.h : * !*/ !*.c", "a.c d/a.c"},
		"double star in front":        {"a/x b/a/x : **/a/x", ""},
		"double star in the middle":   {"a/b a/c/b a/c/d/b c/b : a/**/b", "c/b"},
		"double star behind":          {"a/b a/c/b b : a/**", "b"},
		"double star behind, negated": {"a/b a/c : a/** !a/b", "a/b"},
		"double star inside a name":   {"afoo.c d/afoo.c x/b : **oo.c", "x/b"},
		"star stops at a slash":       {"a/x a/b/x : a/*x", "a/b/x"},
		"classes":                     {"a1 ab a- : a[0-9] a[!a-z0-9]", "ab"},
		"named classes":               {"a1 ab : a[[:digit:]]", "ab"},
		"braces are themselves":       {"a {a,b} : {a,b}", "a"},
		"escaped braces":              {`{a} {b} : \{a\}`, "{b}"},
		"comment and escapes":         {`#a !b c : #c \#a \!b`, "c"},
		"malformed":                   {"a [ : [ a", "["},
	} {
		t.Run(name, func(t *testing.T) {
			names, rules, _ := strings.Cut(test.files, " : ")
			root := tree(t, map[string]string{".gitignore": strings.ReplaceAll(rules, " ", "\n")})
			for _, name := range strings.Fields(names) {
				write(t, root, name, "")
			}
			compare(t, root, strings.Fields(test.want))
		})
	}
}

func TestIgnoreText(t *testing.T) {
	root := tree(t, map[string]string{
		".gitignore": "\uFEFFa\r\n\r\nb  \nc\\ \n\n  \n/\n!\n", "a": "", "b": "", "c ": "", "d": "",
	})
	compare(t, root, []string{"d"})
}

func TestNestedIgnore(t *testing.T) {
	root := tree(t, map[string]string{
		".gitignore": "*.log\nvendor/\n/only-top\n", "a.log": "", "only-top": "",
		"x/.gitignore": "!keep.log\n!vendor\n/anchored\n", "x/keep.log": "", "x/y/keep.log": "", "x/vendor/f": "",
		"x/anchored": "", "x/y/anchored": "", "x/only-top": "", "vendor/f": "", "y/keep.log": "",
		"x/y/.gitignore": "keep.log\n",
	})
	compare(t, root, []string{"x/keep.log", "x/only-top", "x/vendor/f", "x/y/anchored"})
}

// The rules of the folders above count in a repository, also where the search
// begins below.
func TestOuterRules(t *testing.T) {
	root := tree(t, map[string]string{
		".git/HEAD": "", ".gitignore": "*.log\n/src/gen/\n", "src/.gitignore": "/b\n",
		"src/a": "", "src/a.log": "", "src/b": "", "src/gen/c": "", "src/d/e": "", "src/d/gen/c": "",
	})
	for below, want := range map[string][]string{
		"src":   {".gitignore", "a", "d/e", "d/gen/c"},
		"src/d": {"e", "gen/c"},
	} {
		if got := listed(t, filepath.Join(root, below)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", below, got, want)
		}
	}
}

// listed are the files that the tool would search, below root.
func listed(t *testing.T, root string) []string {
	t.Helper()
	w, err := newWalk(root, "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range w.files(func(err error) { t.Error(err) }) {
		names = append(names, strings.TrimPrefix(name, root+"/"))
	}
	slices.Sort(names)
	return names
}

// compare checks what is listed, .gitignore files aside, against want, and want
// against git.
func compare(t *testing.T, root string, want []string) {
	t.Helper()
	if got := withoutRules(listed(t, root)); !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if _, err := exec.LookPath("git"); err != nil {
		return
	}
	if git := withoutRules(listedByGit(t, root)); !slices.Equal(git, want) {
		t.Errorf("the test is wrong: git lists %q, want %q", git, want)
	}
}

func withoutRules(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return path.Base(name) == ".gitignore" })
}

// listedByGit are the files that git would add.
func listedByGit(t *testing.T, root string) []string {
	t.Helper()
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q", "--template=")
	names := strings.Split(git("ls-files", "-z", "--others", "--exclude-standard"), "\x00")
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return names
}

// Random trees and rules show what no table thinks of.
func TestIgnoreAgreesWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		root := tree(t, randomTree(random))
		want, got := listedByGit(t, root), listed(t, root)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: listed %q, git lists %q, of:\n%s", seed, got, want, dump(t, root))
		}
	}
}

// parts leaves out names with ** behind a literal: git's documentation calls
// that a plain star, git's shortcut for literal prefixes thinks otherwise.
var parts = []string{"a", "b", "c", "foo", "*", "*.c", "f*", "**", "?", "[ab]", "[!a]", "**oo", "foo.c", "*oo", "{a,b}", `\a`}

func randomTree(random *rand.Rand) map[string]string {
	names := []string{"a", "b", "c", "foo", "ab", "x"}
	folders := map[string]bool{".": true}
	for range 12 {
		known := slices.Sorted(maps.Keys(folders))
		folders[path.Join(known[random.IntN(len(known))], names[random.IntN(len(names))])] = true
	}
	files := map[string]string{}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		for _, name := range []string{"foo.c", "a.c", "x.h", "foo", "b"} {
			if name = path.Join(folder, name); !folders[name] {
				files[name] = ""
			}
		}
		if folder == "." || random.IntN(5) == 0 {
			files[path.Join(folder, ".gitignore")] = randomRules(random)
		}
	}
	return files
}

func randomRules(random *rand.Rand) string {
	var lines strings.Builder
	for range 1 + random.IntN(4) {
		var chosen []string
		for range 1 + random.IntN(3) {
			chosen = append(chosen, parts[random.IntN(len(parts))])
		}
		prefix := []string{"", "", "/", "!", "!/"}[random.IntN(5)]
		suffix := []string{"", "", "", "/"}[random.IntN(4)]
		lines.WriteString(prefix + strings.Join(chosen, "/") + suffix + "\n")
	}
	return lines.String()
}

func dump(t *testing.T, root string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if filepath.Base(name) == ".gitignore" {
			content, _ := os.ReadFile(name)
			text.WriteString(name + ":\n" + string(content))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}
