package call

import (
	"testing"

	"github.com/toolhost/toolhost/api"
)

func TestNotCopied(t *testing.T) {
	link := api.File{Path: "a\nb", Skipped: "is a link"}
	if got, want := notCopied([]api.File{link}), `1 of the workspace's files was not copied: "a\nb": is a link`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := notCopied([]api.File{link, {Path: "c", Skipped: "is too large"}}), `2 of the workspace's files were not copied, such as "a\nb": is a link`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
