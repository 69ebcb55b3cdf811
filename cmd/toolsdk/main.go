// Command toolsdk is for authors of tools: it makes new projects, calls a
// tool and shows everything, holds a binary in any language to the plugin
// protocol, and packs it.
package main

import (
	"os"

	"github.com/toolhost/toolhost/supervisor"
)

func main() {
	supervisor.RelayMain()
	os.Exit(run(os.Args[1:]))
}
