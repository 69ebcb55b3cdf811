package schema

// several has the keywords that apply a list of subschemas to the same value.
func (f *finder) several(rules map[string]any, value any, where path) error {
	all, _ := rules["allOf"].([]any)
	for _, one := range all {
		if err := f.broken(one, value, where); err != nil {
			return err
		}
	}
	if list, ok := rules["anyOf"].([]any); ok && f.fitting(list, value) == 0 {
		return f.alternatives("anyOf", list, value, where)
	}
	list, ok := rules["oneOf"].([]any)
	if !ok {
		return nil
	}
	switch f.fitting(list, value) {
	case 0:
		return f.alternatives("oneOf", list, value, where)
	case 1:
		return nil
	}
	return where.says("%s fits several of the %d forms of oneOf, want just one", show(value), len(list))
}

func (f *finder) fitting(list []any, value any) (n int) {
	for _, one := range list {
		if f.fits(one, value) {
			n++
		}
	}
	return n
}

// other has not and if.
func (f *finder) other(rules map[string]any, value any, where path) error {
	if not, ok := rules["not"]; ok && f.fits(not, value) {
		return where.says("want what does not fit %s (not), not %s", literals([]any{not}), show(value))
	}
	condition, ok := rules["if"]
	switch {
	case !ok:
		return nil
	case f.fits(condition, value):
		return f.broken(rules["then"], value, where)
	}
	return f.broken(rules["else"], value, where)
}

// alternatives explains what anyOf and oneOf refuse: by the only one of them that
// takes values of this type, if there is one.
func (f *finder) alternatives(keyword string, list []any, value any, where path) error {
	var types, consts, likely []any
	for _, one := range list {
		rules := f.followed(one)
		own := typesOf(rules["type"])
		if is, ok := rules["const"]; ok {
			consts = append(consts, is)
		}
		if types = append(types, own...); len(own) == 0 || isOf(value, own) {
			likely = append(likely, one)
		}
	}
	switch {
	case len(list) > 0 && len(consts) == len(list):
		return where.says("want one of %s, not %s", literals(consts), show(value))
	case len(likely) == 0:
		return where.says("want %s, not %s", typeWords(types), show(value))
	case len(likely) == 1:
		if err := f.broken(likely[0], value, where); err != nil {
			return err
		}
	}
	return where.says("%s fits none of the %d forms of %s", show(value), len(list), keyword)
}

// followed is a subschema, or what it refers to.
func (f *finder) followed(node any) map[string]any {
	for range MaxDepth {
		rules, _ := node.(map[string]any)
		ref, ok := rules["$ref"].(string)
		if !ok {
			return rules
		}
		node, _ = f.resolve(ref)
	}
	return nil
}
