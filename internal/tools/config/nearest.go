package config

import "strings"

// maxNearBytes bounds the words that are compared.
const maxNearBytes = 128 // as long as a name of MCP

// Nearest is the known word that takes the fewest changes to make of word, or
// "" if that is more than a third of it.
func Nearest(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, candidate := range known {
		if max(len(word), len(candidate)) > maxNearBytes { // it takes the product of both
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the changes that make b of a: letters put in, taken out,
// replaced, or swapped with their neighbour.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	var before, previous []int
	for i := 1; i <= len(a); i++ {
		before, previous, row = previous, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := previous[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(previous[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
