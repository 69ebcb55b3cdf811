package text

import "strings"

// plainWord says whether s needs no quotes in a shell.
func plainWord(s string) bool {
	for _, c := range []byte(s) {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !plain && !strings.ContainsRune("_./@%+=:,-", rune(c)) {
			return false
		}
	}
	return s != ""
}

// ShellWord quotes s so that a shell reads it as one word.
func ShellWord(s string) string {
	if plainWord(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
