package config

// Limit reads a limit as the file has it under a key of the root; wrong says why it is
// invalid.
func Limit(key, value string) (n int64, wrong string) {
	data, wrong := at(rootKeys, key).kind.read(nil, &node{shape: text, value: value})
	n, _ = data.(int64)
	return n, wrong
}
