package siege

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == asChild:
		hang()
	case os.Getenv("TOOLHOST_PLUGIN") != "" && len(os.Args) > 1:
		playTool(os.Args[1])
	case os.Getenv(asMob) != "":
		playMob()
	default:
		os.Exit(m.Run())
	}
}
