package mcpclients

import (
	"slices"

	"github.com/tailscale/hujson"
)

// open are the keys of an entry whose values are shown, but for what looks like a
// credential in them. Those of variables and headers are not, whatever their names.
var open = []string{"type", "command", "args", "cwd", "url", "serverUrl", "oauth_resource", "env_http_headers", "bearer_token_env_var"}

// masked is an entry without what may be a secret, in its own order.
func masked(entry hujson.Value) []byte {
	o, is := entry.Value.(*hujson.Object)
	if !is {
		return nil
	}
	for i := range o.Members {
		key, _ := o.Members[i].Name.Value.(hujson.Literal)
		mask(&o.Members[i].Value, slices.Contains(open, key.String()))
	}
	return hujson.Value{Value: o}.Pack()
}

// mask masks texts and numbers, or only what looks like a credential.
func mask(v *hujson.Value, shown bool) {
	switch value := v.Value.(type) {
	case *hujson.Object:
		for i := range value.Members {
			mask(&value.Members[i].Value, shown)
		}
	case *hujson.Array:
		before := ""
		for i := range value.Elements {
			text, _ := value.Elements[i].Value.(hujson.Literal)
			maskBehind(before, &value.Elements[i], shown)
			before = text.String()
		}
	default:
		maskBehind("", v, shown)
	}
}

func maskBehind(before string, v *hujson.Value, shown bool) {
	literal, is := v.Value.(hujson.Literal)
	switch {
	case !is:
		mask(v, shown)
	case literal.Kind() == '"' && shown:
		v.Value = hujson.String(maskedWord(before, literal.String()))
	case literal.Kind() == '"' || literal.Kind() == '0':
		v.Value = hujson.String("…")
	}
}
