package programs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/stage"
)

const examples = "../../../examples"

// TestTheExample runs the tools of examples/network.yaml as they are; behind the
// names that they are granted stand the lab's servers.
func TestTheExample(t *testing.T) {
	stage.Of(t, "network")
	modules := npm.Folder(t, filepath.Join(examples, "network")) // while there is the machine's network
	ms := npm.Tarball(t, "ms", "2.1.3")
	l := lab.Run(t)
	if l == nil {
		return
	}
	for _, name := range []string{"pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "context7.com"} {
		l.Set(name, lab.Address)
	}
	l.Site("pypi.org", files(map[string][]byte{"/simple/idna": []byte(`<a href="https://files.pythonhosted.org/packages/idna-3.10-py3-none-any.whl">idna</a>`)}))
	l.Site("files.pythonhosted.org", files(map[string][]byte{"/packages/idna-3.10-py3-none-any.whl": wheel(t, "idna", "3.10")}))
	l.Site("registry.npmjs.org", files(map[string][]byte{"/ms/-/ms-2.1.3.tgz": ms}))
	var asked atomic.Int64
	l.Site("context7.com", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"results": [{"id": "/lab/undici", "title": "Undici of the lab", "description": "` + r.URL.Path + " " + r.URL.Query().Get("libraryName") + `"}]}`))
	}))
	e := example{t, exampleFolder(t, l, modules), t.TempDir()}
	if err := binaries.Into(e.bin, "toolhost"); err != nil {
		t.Fatal(err)
	}

	e.reaches(e.run("pip_install"), "pypi.org", "files.pythonhosted.org")
	e.has("network/project/site/idna.py", "of the wheel")
	e.reaches(e.run("npm_ci"), "registry.npmjs.org")
	e.has("network/project/node_modules/ms/index.js", "module.exports")
	r := e.run("docs__resolve-library-id", "libraryName=undici", "query=how to fetch")
	if e.reaches(r, "context7.com"); !strings.Contains(fmt.Sprint(r.Content), "/lab/undici") || asked.Load() != 1 {
		t.Errorf("%d requests, and the server says %q", asked.Load(), r.Content)
	}

	r = e.run("--net", "pypi.org:443", "--net", lab.Address, "pip_install")
	if !slices.ContainsFunc(r.Network.Refused, func(f refusal) bool { return f.Name == "files.pythonhosted.org" && f.Why == "not granted" }) {
		t.Errorf("without the other name: %s, %+v", r.Message, r.Network)
	}
	if r.Status == "ok" || !strings.Contains(r.Retry.Hint, "--net files.pythonhosted.org") {
		t.Errorf("%s, and the hint %q", r.Status, r.Retry.Hint)
	}
	if r = e.run("--net", "example.com", "npm_ci"); r.Status != "start_failed" || !strings.Contains(r.Message, "goes beyond the ceiling") {
		t.Errorf("beyond the ceiling: %s, %s", r.Status, r.Message)
	}
}

// exampleFolder is a copy of the example. Its tools are granted the lab's address,
// which no name may lead to otherwise, and told of its certificate.
func exampleFolder(t *testing.T, l *lab.Lab, modules string) string {
	dir, err := os.MkdirTemp("/tmp", "example-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, err := range []error{
		os.Chmod(dir, 0o755),
		os.CopyFS(filepath.Join(dir, "network/project"), os.DirFS(filepath.Join(examples, "network/project"))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "cp", "-R", filepath.Join(modules, "node_modules"), "network/node_modules")
	ca := filepath.Join(dir, "network/project/ca.pem")
	run(t, dir, "cp", l.CA, ca)
	text, err := os.ReadFile(filepath.Join(examples, "network.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), "network: [", `network: ["`+lab.Address+`", `)
	told := fmt.Sprintf("$0\n    env: {PIP_CERT: %s, npm_config_cafile: %[1]s, NODE_EXTRA_CA_CERTS: %[1]s}", ca)
	changed = regexp.MustCompile(`(?m)^    network: .*$`).ReplaceAllString(changed, told)
	write(t, filepath.Join(dir, "network.yaml"), []byte(changed), 0o644)
	return dir
}

// result is what toolhost says of a call.
type result struct {
	Status, Message string
	Retry           struct{ Hint string }
	Content         []struct{ Text string }
	Network         struct {
		Flows []struct {
			Name, Error         string
			Port, ReceivedBytes int64
		}
		Refused []refusal
	}
}

type refusal struct{ Name, Why string }

type example struct {
	t        *testing.T
	dir, bin string
}

// run is `toolhost run --json` with that file.
func (e example) run(words ...string) result {
	e.t.Helper()
	args := append([]string{"run", "--config", filepath.Join(e.dir, "network.yaml"), "--json"}, words...)
	said := output(e.t, exec.Command(filepath.Join(e.bin, "toolhost"), args...))
	var r result
	if err := json.Unmarshal(said, &r); err != nil {
		e.t.Fatalf("%v\n%s", err, said)
	}
	return r
}

// reaches wants a call to have gone well, and to have reached these and nothing else.
func (e example) reaches(r result, names ...string) {
	e.t.Helper()
	var got []string
	for _, f := range r.Network.Flows {
		got = append(got, f.Name)
		if f.Port != 443 || f.Error != "" || f.ReceivedBytes == 0 {
			e.t.Errorf("%+v", f)
		}
	}
	slices.Sort(got)
	slices.Sort(names)
	if r.Status != "ok" || !slices.Equal(got, names) || len(r.Network.Refused) > 0 {
		e.t.Errorf("%s: %s; %+v, want %q", r.Status, r.Message, r.Network, names)
	}
}

func (e example) has(path, want string) {
	e.t.Helper()
	content, err := os.ReadFile(filepath.Join(e.dir, path))
	if err != nil || !strings.Contains(string(content), want) {
		e.t.Errorf("%s: %v, %.200q", path, err, content)
	}
}
