package programs

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"os/user"
	slashes "path"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testenv/lab"
	"github.com/toolhost/toolhost/internal/testenv/wait"
)

// serve has the lab serve what the programs want of git, pip, npm, apt, ssh and a
// database; what they need for it is put into dir.
func serve(t *testing.T, l *lab.Lab, dir string) {
	serveGit(t, l, dir)
	l.Site("pip.test", files(map[string][]byte{"/simple/demo": []byte(`<a href="/demo-1.0-py3-none-any.whl">demo</a>`), "/demo-1.0-py3-none-any.whl": wheel(t, "demo", "1.0")}))
	serveNPM(t, l, dir)
	serveArchive(t, l, dir)
	serveSSH(t, dir)
	serveDatabase(t)
	serveOthers(t, l, dir)
}

// files serves these and no others.
func files(all map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := all[slashes.Clean(r.URL.Path)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if filepath.Ext(r.URL.Path) == "" && content[0] == '<' {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = w.Write(content)
	})
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

func write(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

func serveGit(t *testing.T, l *lab.Lab, dir string) {
	bare, work := filepath.Join(dir, "git/demo.git"), filepath.Join(dir, "git/work")
	write(t, filepath.Join(work, "file"), []byte("of the repository\n"), 0o644)
	run(t, work, "git", "init", "-q")
	run(t, work, "git", "add", "file")
	run(t, work, "git", "-c", "user.name=lab", "-c", "user.email=lab@a.test", "commit", "-q", "-m", "one")
	run(t, dir, "git", "clone", "-q", "--bare", work, bare)
	where, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	l.Site("git.test", &cgi.Handler{
		Path: filepath.Join(string(bytes.TrimSpace(where)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(bare), "GIT_HTTP_EXPORT_ALL=1"},
	})
}

func wheel(t *testing.T, name, version string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	info := name + "-" + version + ".dist-info/"
	for path, content := range map[string]string{
		name + ".py": "# of the wheel\n", info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n",
		info + "WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n", info + "RECORD": name + ".py,,\n",
	} {
		f, err := z.Create(path)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func serveNPM(t *testing.T, l *lab.Lab, dir string) {
	tarred := packed(t, map[string]string{"package/package.json": `{"name":"demo","version":"1.0.0"}`, "package/index.js": "// of the package\n"})
	sum := sha512.Sum512(tarred)
	integrity, tarball := "sha512-"+base64.StdEncoding.EncodeToString(sum[:]), "https://npm.test/demo/-/demo-1.0.0.tgz"
	about := fmt.Appendf(nil, `{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"demo","version":"1.0.0","dist":{"tarball":%q,"integrity":%q}}}}`, tarball, integrity)
	l.Site("npm.test", files(map[string][]byte{"/demo/-/demo-1.0.0.tgz": tarred, "/demo": about}))
	write(t, filepath.Join(dir, "npm/project/package.json"), []byte(`{"name":"p","version":"1.0.0","dependencies":{"demo":"1.0.0"}}`), 0o644)
	write(t, filepath.Join(dir, "npm/project/package-lock.json"), fmt.Appendf(nil,
		`{"name":"p","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"p","version":"1.0.0","dependencies":{"demo":"1.0.0"}},`+
			`"node_modules/demo":{"version":"1.0.0","resolved":%q,"integrity":%q}}}`, tarball, integrity), 0o644)
}

func serveArchive(t *testing.T, l *lab.Lab, dir string) {
	control := "Package: demo\nVersion: 1.0\nArchitecture: all\nMaintainer: lab <lab@a.test>\nDescription: one file\n"
	write(t, filepath.Join(dir, "deb/DEBIAN/control"), []byte(control), 0o644)
	write(t, filepath.Join(dir, "deb/usr/share/demo"), []byte("of the archive\n"), 0o644)
	run(t, dir, "dpkg-deb", "--root-owner-group", "-b", "deb", "demo.deb")
	deb, err := os.ReadFile(filepath.Join(dir, "demo.deb"))
	if err != nil {
		t.Fatal(err)
	}
	packages := fmt.Appendf(nil, "%sFilename: ./demo_1.0_all.deb\nSize: %d\nSHA256: %x\n", control, len(deb), sha256.Sum256(deb))
	release := fmt.Appendf(nil, "Suite: lab\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n %x %d Packages\n", sha256.Sum256(packages), len(packages))
	l.Site("deb.test", files(map[string][]byte{"/Packages": packages, "/Release": release, "/demo_1.0_all.deb": deb}))
	write(t, filepath.Join(dir, "sources.list"), []byte("deb [trusted=yes] https://deb.test/ ./\n"), 0o644)
	write(t, filepath.Join(dir, "status"), nil, 0o644)
}

// server runs a program for as long as the test runs, until it listens.
func server(t *testing.T, cmd *exec.Cmd, port int) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, said.Bytes())
		}
	})
	wait.Until(t, cmd.Path+" listens", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(lab.Address, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

func serveSSH(t *testing.T, dir string) {
	secret := t.TempDir()
	run(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "key"))
	run(t, secret, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "host")
	config := fmt.Sprintf("ListenAddress %s:22\nHostKey %s/host\nAuthorizedKeysFile %s/key.pub\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n", lab.Address, secret, dir)
	write(t, filepath.Join(secret, "sshd_config"), []byte(config), 0o600)
	if os.Mkdir("/run/sshd", 0o755) == nil { // of the machine's service, where that is not running
		t.Cleanup(func() { _ = os.Remove("/run/sshd") })
	}
	server(t, exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(secret, "sshd_config")), 22)
}

func serveDatabase(t *testing.T) {
	owner, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	dir, err := os.MkdirTemp("/tmp", "database-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		t.Fatal("PostgreSQL's programs are not there: install the Debian package postgresql")
	}
	as := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(found[0], program), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		return cmd
	}
	if out, err := as("initdb", "-D", dir+"/data", "-A", "trust", "-N").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	write(t, dir+"/hba", []byte("host all all all trust\n"), 0o644)
	server(t, as("postgres", "-D", dir+"/data", "-c", "hba_file="+dir+"/hba", "-c", "listen_addresses="+lab.Address, "-c", "unix_socket_directories=", "-c", "fsync=off"), 5432)
}
