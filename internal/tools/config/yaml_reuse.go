package config

import "github.com/goccy/go-yaml/ast"

// A file with anchors, aliases or merge keys is refused. They are followed all
// the same, so that it is refused once, with all that is wrong in it: what an
// alias cannot be followed to hides the rest.

func (p *yamlReader) anchor(from *ast.AnchorNode, path string, depth int) *node {
	n := p.node(from.Value, path, depth+1)
	p.anchors[from.Name.String()] = n
	return n
}

// alias is what stands at its anchor. n is where the alias stands.
func (p *yamlReader) alias(from *ast.AliasNode, n *node) *node {
	found := p.anchors[from.Value.String()]
	if found == nil || !p.spend(found) {
		p.failed = true
		return n
	}
	same := *found
	same.path = n.path
	return &same
}

// spend counts all nodes that an alias stands for, which may be many more than
// the file has.
func (p *yamlReader) spend(n *node) bool {
	if p.left--; p.left < 0 {
		return false
	}
	for _, item := range n.items {
		if !p.spend(item) {
			return false
		}
	}
	for _, e := range n.entries {
		if !p.spend(e.value) {
			return false
		}
	}
	return true
}

// merge adds what merge keys stand for, where n has no such key itself.
func (p *yamlReader) merge(n *node, merged []*node) {
	for _, from := range merged {
		switch from.shape {
		case mapping:
			for _, e := range from.entries {
				if n.child(e.key.value) == nil {
					n.entries = append(n.entries, e)
				}
			}
		case list:
			p.merge(n, from.items)
		default:
			p.failed = true
		}
	}
}
