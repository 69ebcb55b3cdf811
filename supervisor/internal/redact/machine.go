package redact

// machine finds all patterns at once in one pass (Aho and Corasick, 1975). Node
// 0 is the root.
type machine struct {
	root    [256]int32 // the root's children: 0 means none
	nodes   []node
	longest int // pattern
	// pairs has a bit for each two bytes that a pattern begins with: most text is
	// passed by a look at them alone.
	pairs [1 << 16 / 64]uint64
}

// node is a prefix of patterns. Children are a list: nodes other than the root
// have few.
type node struct {
	child, sibling int32
	fail           int32 // the longest proper suffix that is a node
	depth          int32
	match          int32 // length of the longest pattern that ends here; 0 means none
	letter         byte
}

func newMachine(patterns []string) *machine {
	m := &machine{nodes: make([]node, 1)}
	for _, pattern := range patterns {
		m.add(pattern)
	}
	m.link()
	return m
}

// add takes a pattern of two bytes or more.
func (m *machine) add(pattern string) {
	at, pair := int32(0), pairOf(pattern[0], pattern[1])
	m.pairs[pair/64] |= 1 << (pair % 64)
	for i := range len(pattern) {
		to := m.childOf(at, pattern[i])
		if to == 0 {
			to = int32(len(m.nodes))
			m.nodes = append(m.nodes, node{letter: pattern[i], depth: m.nodes[at].depth + 1})
			m.adopt(at, to)
		}
		at = to
	}
	m.nodes[at].match = m.nodes[at].depth
	m.longest = max(m.longest, len(pattern))
}

func (m *machine) adopt(parent, child int32) {
	if parent == 0 {
		m.root[m.nodes[child].letter] = child
		return
	}
	m.nodes[child].sibling = m.nodes[parent].child
	m.nodes[parent].child = child
}

// childOf is 0 for none.
func (m *machine) childOf(at int32, letter byte) int32 {
	if at == 0 {
		return m.root[letter]
	}
	child := m.nodes[at].child
	for child != 0 && m.nodes[child].letter != letter {
		child = m.nodes[child].sibling
	}
	return child
}

// link sets fail and match, shallow nodes first.
func (m *machine) link() {
	var queue []int32
	for _, child := range m.root {
		if child != 0 {
			queue = append(queue, child)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		at := m.nodes[queue[0]]
		for child := at.child; child != 0; child = m.nodes[child].sibling {
			fail := m.next(at.fail, m.nodes[child].letter)
			m.nodes[child].fail = fail
			m.nodes[child].match = max(m.nodes[child].match, m.nodes[fail].match)
			queue = append(queue, child)
		}
	}
}

// next is the longest prefix of a pattern that the text ends with after one more
// letter.
func (m *machine) next(at int32, letter byte) int32 {
	for {
		child := m.childOf(at, letter)
		if child != 0 || at == 0 {
			return child
		}
		at = m.nodes[at].fail
	}
}

func pairOf(first, second byte) uint { return uint(first)<<8 | uint(second) }

func (m *machine) begins(first, second byte) bool {
	pair := pairOf(first, second)
	return m.pairs[pair/64]&(1<<(pair%64)) != 0
}

// scan goes on from a node through text, which stands at offset, and adds what
// it finds to spans.
func scan[T string | []byte](m *machine, at int32, text T, offset int64, spans []span) (int32, []span) {
	for i := 0; i < len(text); i++ {
		if at == 0 {
			for i+1 < len(text) && !m.begins(text[i], text[i+1]) {
				i++
			}
		}
		at = m.next(at, text[i])
		if n := int64(m.nodes[at].match); n > 0 {
			end := offset + int64(i) + 1
			spans = join(spans, span{end - n, end})
		}
	}
	return at, spans
}
