package portable

// MaxElements is more than a result has in all of its lists but its content.
const MaxElements = 32 << 10

// elements counts what the lists in a result's JSON have, each of which may take far more to
// hold than to send: {} is a round. What stays JSON in a result is not looked into.
func elements(raw []byte) (n int) {
	var open, key []byte // the brackets that are open, and the last string
	stays, at := false, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			from := i + 1
			for i = from; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			key = raw[from:min(i, len(raw))]
		case ':':
			if !stays {
				stays, at = staysJSON(key), len(open)
			}
		case '[', '{':
			open = append(open, raw[i])
			if raw[i] == '[' && !stays {
				n++
			}
		case ']', '}':
			open = open[:max(len(open)-1, 0)]
			stays = stays && len(open) >= at
		case ',':
			stays = stays && len(open) > at
			if !stays && len(open) > 0 && open[len(open)-1] == '[' {
				n++
			}
		}
	}
	return n
}

// staysJSON says whether a field's value is JSON in a result. A name that is written in another
// way, which is read all the same, is not a worker's.
func staysJSON(key []byte) bool {
	switch string(key) {
	case "structured", "meta", "json", "extra", "rpc":
		return true
	}
	return false
}
