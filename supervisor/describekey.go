package supervisor

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/supervisor/internal/describe"
	"github.com/toolhost/toolhost/supervisor/internal/prepare"
)

// Describes have slots of their own, so that tools which hang in a Describe hold up no call.
const (
	maxDescribing = 16
	describeQueue = 1024
)

// flightKey is equal for requests whose Describe has the same outcome, failures included.
func flightKey(key string, request Request) describe.Key {
	all := fmt.Appendf(nil, "%q %q %q %+v %+v %+v %d %+v %d %q %q", key, request.Env, request.Dir, request.Limits, request.Sandbox, request.Timeouts, request.Timeout,
		request.Profiles, request.Tool.DescribeTimeout, stamps(request), request.Lease.Name())
	for _, s := range request.Secrets { // a Secret prints without its value
		all = fmt.Appendf(all, " %q %t %q", s.Variable, s.File, s.Value)
	}
	return sha256.Sum256(all)
}

// stamps returns size and time of the files that the tool's arguments name: what it runs
// changes with them.
func stamps(request Request) (list []string) {
	for _, arg := range request.Tool.Args {
		path := arg
		if !strings.Contains(arg, "/") {
			path, _ = exec.LookPath(arg)
		}
		for _, path := range []string{path, filepath.Join(request.Dir, arg)} {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				list = append(list, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
			}
		}
	}
	return list
}

// describeKey is equal for requests that get the same description.
func describeKey(request Request, found prepare.Binary) string {
	key := found.SHA256 + "\x00" + strings.Join(request.Tool.Args, "\x00")
	if request.Tool.Adapter {
		key += fmt.Sprintf("\x00%q %q %+v", request.Env, request.Dir, request.Sandbox)
	}
	return key
}
