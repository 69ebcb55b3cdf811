package programs

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/toolhost/toolhost/internal/testenv/lab"
)

// serveOthers has the lab serve what the other programs want.
func serveOthers(t *testing.T, l *lab.Lab, dir string) {
	l.Site("files.test", files(map[string][]byte{"/": []byte(`<a href="file">file</a>`), "/file": []byte("of the files\n")}))
	l.Site("ws.test", websocket.Server{Handler: func(c *websocket.Conn) { _, _ = io.Copy(c, c) }})
	rpc := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(rpc, health.NewServer())
	t.Cleanup(rpc.Stop)
	l.Site("grpc.test", rpc)
	serveCrates(t, l, dir)
	serveComposer(t, l, dir)
	serveLargeFiles(t, l, dir)
	serveMail(t)
	serveChanges(t, dir)
	serveTables(t)
	server(t, exec.Command("redis-server", "--bind", lab.Address, "--protected-mode", "no", "--save", "", "--dir", t.TempDir()), 6379)
	broker := filepath.Join(t.TempDir(), "mosquitto.conf")
	write(t, broker, []byte("listener 1883 "+lab.Address+"\nallow_anonymous true\nuser root\n"), 0o644)
	server(t, exec.Command("/usr/sbin/mosquitto", "-c", broker), 1883)
	daemon := filepath.Join(t.TempDir(), "rsyncd.conf")
	write(t, daemon, fmt.Appendf(nil, "use chroot = no\n[files]\npath = %s/git/work\n", dir), 0o644)
	server(t, exec.Command("rsync", "--daemon", "--no-detach", "--config", daemon, "--address", lab.Address, "--port", "873"), 873)
}

// bare makes a bare repository of the files in a folder, for git.test.
func bare(t *testing.T, dir, name string) {
	t.Helper()
	work := filepath.Join(dir, name)
	run(t, work, "git", "init", "-q")
	run(t, work, "git", "-c", "filter.lfs.clean=cat", "add", ".")
	run(t, work, "git", "-c", "user.name=lab", "-c", "user.email=lab@a.test", "-c", "filter.lfs.clean=cat", "commit", "-q", "-m", "one")
	run(t, dir, "git", "clone", "-q", "--bare", work, filepath.Join(dir, "git", filepath.Base(name)+".git"))
}

func packed(t *testing.T, all map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for name, content := range all {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, content)
	}
	_, _ = w.Close(), zipped.Close()
	return b.Bytes()
}

func serveCrates(t *testing.T, l *lab.Lab, dir string) {
	crate := packed(t, map[string]string{
		"demo-1.0.0/Cargo.toml": "[package]\nname = \"demo\"\nversion = \"1.0.0\"\n", "demo-1.0.0/src/lib.rs": "// of the crate\n",
	})
	l.Site("crates.test", files(map[string][]byte{"/demo-1.0.0.crate": crate}))
	write(t, filepath.Join(dir, "cargo/index/config.json"), []byte(`{"dl":"https://crates.test/{crate}-{version}.crate"}`), 0o644)
	write(t, filepath.Join(dir, "cargo/index/de/mo/demo"), fmt.Appendf(nil, `{"name":"demo","vers":"1.0.0","deps":[],"cksum":"%x","features":{},"yanked":false}`+"\n", sha256.Sum256(crate)), 0o644)
	bare(t, dir, "cargo/index")
	for name, content := range map[string]string{
		"Cargo.toml": "[package]\nname = \"p\"\nversion = \"1.0.0\"\n[dependencies]\ndemo = \"1\"\n", "src/lib.rs": "",
		".cargo/config.toml": "[source.crates-io]\nreplace-with = \"lab\"\n[source.lab]\nregistry = \"https://git.test/index.git\"\n",
	} {
		write(t, filepath.Join(dir, "cargo/project", name), []byte(content), 0o644)
	}
}

func serveComposer(t *testing.T, l *lab.Lab, dir string) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create("demo.php")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(f, "<?php // of the bundle\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	l.Site("php.test", files(map[string][]byte{
		"/packages.json": []byte(`{"packages":{"lab/demo":{"1.0.0":{"name":"lab/demo","version":"1.0.0","dist":{"type":"zip","url":"https://php.test/demo.zip"}}}}}`),
		"/demo.zip":      b.Bytes(),
	}))
	write(t, filepath.Join(dir, "composer/composer.json"),
		[]byte(`{"repositories":[{"type":"composer","url":"https://php.test"},{"packagist.org":false}],"require":{"lab/demo":"1.0.0"}}`), 0o644)
}

// serveLargeFiles has a repository whose one file lies in git-lfs.
func serveLargeFiles(t *testing.T, l *lab.Lab, dir string) {
	content := []byte("of the large store\n")
	oid := fmt.Sprintf("%x", sha256.Sum256(content))
	write(t, filepath.Join(dir, "large/.gitattributes"), []byte("*.big filter=lfs diff=lfs merge=lfs -text\n"), 0o644)
	write(t, filepath.Join(dir, "large/file.big"), fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content)), 0o644)
	bare(t, dir, "large")
	repositories := l.SiteOf("git.test")
	l.Site("git.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/info/lfs/objects/batch"):
			w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
			_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": []any{map[string]any{
				"oid": oid, "size": len(content), "actions": map[string]any{"download": map[string]any{"href": "https://git.test/lfs/" + oid}},
			}}})
		case strings.HasPrefix(r.URL.Path, "/lfs/"):
			_, _ = w.Write(content)
		default:
			repositories.ServeHTTP(w, r)
		}
	}))
}

// serveMail takes letters.
func serveMail(t *testing.T) {
	listener, err := net.Listen("tcp", net.JoinHostPort(lab.Address, "25"))
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { lab.Each(listener, takeLetter) })
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
}

func takeLetter(conn net.Conn) {
	say := func(line string) { _, _ = io.WriteString(conn, line+"\r\n") }
	say("220 mail.test")
	inText := false
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		verb, _, _ := strings.Cut(strings.ToUpper(lines.Text()), " ")
		switch {
		case inText && verb == ".":
			inText = false
			say("250 of the postman")
		case inText:
		case verb == "DATA":
			inText = true
			say("354 go on")
		case verb == "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// serveChanges has a Mercurial and a Subversion repository.
func serveChanges(t *testing.T, dir string) {
	hg := filepath.Join(dir, "hg")
	write(t, filepath.Join(hg, "file"), []byte("of the changes\n"), 0o644)
	run(t, hg, "hg", "init")
	run(t, hg, "hg", "add", "-q", "file")
	run(t, hg, "hg", "commit", "-q", "-u", "lab", "-m", "one")
	server(t, exec.Command("hg", "-R", hg, "serve", "-a", lab.Address, "-p", "8000"), 8000)
	svn := filepath.Join(dir, "svn")
	run(t, dir, "svnadmin", "create", svn)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, []byte("of the revisions\n"), 0o644)
	run(t, dir, "svn", "import", "-q", "--non-interactive", "-m", "one", file, "file://"+svn+"/file")
	server(t, exec.Command("svnserve", "-d", "--foreground", "-r", svn, "--listen-host", lab.Address), 3690)
}

func serveTables(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "tables-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	run(t, dir, "chown", "mysql:mysql", dir)
	run(t, dir, "mariadb-install-db", "--no-defaults", "--user=mysql", "--datadir="+dir+"/data", "--skip-test-db", "--auth-root-authentication-method=normal")
	write(t, dir+"/init.sql", []byte("create user lab@'%';\n"), 0o644)
	server(t, exec.Command("mariadbd", "--no-defaults", "--user=mysql", "--datadir="+dir+"/data", "--bind-address="+lab.Address, "--socket="+dir+"/socket", "--pid-file="+dir+"/pid", "--init-file="+dir+"/init.sql"), 3306)
}
