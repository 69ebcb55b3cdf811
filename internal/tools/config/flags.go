package config

import "strings"

// limitParsers read what flags of the command line take as the file does, by its
// keys.
var limitParsers = map[string]func(string) (any, string){
	"memory": orInfinity(parseSize), "pids": orInfinity(parseCount), "cpu": orInfinity(parsePercent),
	"output": orInfinity(parseSize), "outputTotal": orInfinity(parseSize), "workspace": orInfinity(parseSize),
	"retainSize": orInfinity(parseSize),
}

// Limit reads a limit as the file has it under a key; wrong says why it is
// invalid.
func Limit(key, value string) (n int64, wrong string) {
	v, wrong := limitParsers[key](value)
	if wrong != "" {
		return 0, wrong
	}
	return v.(int64), ""
}

// LacksPercent says that a quota of CPU time is a bare number, and wrong how it
// would be written.
func LacksPercent(wrong string) bool { return strings.HasPrefix(wrong, "has no %") }
