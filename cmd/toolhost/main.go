// Command toolhost runs tools that language models ask for: each call in its
// own process group, cgroup and PID namespace, killed reliably when its
// time is over, with a result that says truthfully what happened.
package main

import (
	"os"

	_ "github.com/toolhost/toolhost/internal/prefault"
	"github.com/toolhost/toolhost/supervisor"
)

func main() {
	supervisor.RelayMain()
	os.Exit(run(os.Args[1:]))
}
