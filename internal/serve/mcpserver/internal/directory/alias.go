package directory

import "strings"

// foreign begins the alias of a URI that clients know as another server's: foreign, the
// entry's name, a slash and the server's own URI. In place of uiScheme it is foreignUI:
// clients show a tool's page only where its URI begins so.
const (
	foreign   = "toolhost:"
	uiScheme  = "ui://"
	foreignUI = uiScheme + "toolhost/"
)

func aliasOf(entry, uri string) string {
	if rest, is := strings.CutPrefix(uri, uiScheme); is {
		return foreignUI + entry + "/" + rest
	}
	return foreign + entry + "/" + uri
}

// ofAlias reads an aliasOf.
func ofAlias(alias string) (entry, uri string, is bool) {
	if rest, ui := strings.CutPrefix(alias, foreignUI); ui {
		entry, uri, is = strings.Cut(rest, "/")
		return entry, uiScheme + uri, is
	}
	rest, is := strings.CutPrefix(alias, foreign)
	entry, uri, _ = strings.Cut(rest, "/")
	return entry, uri, is
}
