package format

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// golden compares parts of an archive with what they should be, or writes them.
func golden(t *testing.T, path string, want ...txtar.File) {
	t.Helper()
	archive := &txtar.Archive{}
	if raw, err := os.ReadFile(path); err == nil {
		archive = txtar.Parse(raw)
	} else if !*update {
		t.Fatal(err)
	}
	for _, file := range want {
		part := find(archive, file.Name)
		if *update {
			part.Data = file.Data
		} else if !bytes.Equal(part.Data, file.Data) {
			t.Errorf("%s in %s differs (if it is meant to: go test ./turn/format -update)\n got: %s\nwant: %s", file.Name, path, file.Data, part.Data)
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// find returns the part of that name, which it adds if it is missing.
func find(archive *txtar.Archive, name string) *txtar.File {
	for i := range archive.Files {
		if archive.Files[i].Name == name {
			return &archive.Files[i]
		}
	}
	archive.Files = append(archive.Files, txtar.File{Name: name})
	return &archive.Files[len(archive.Files)-1]
}

// pretty indents JSON.
func pretty(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// recorded calls f with each response in testdata.
func recorded(f func(provider Provider, path string, response []byte)) error {
	for _, p := range providers {
		paths, err := filepath.Glob(filepath.Join("testdata", "calls", p.Name(), "*.txtar"))
		if err != nil || len(paths) == 0 {
			return os.ErrNotExist
		}
		for _, path := range paths {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				return err
			}
			f(p, path, find(archive, "response.json").Data)
		}
	}
	return nil
}

func TestRecordedResponses(t *testing.T) {
	err := recorded(func(p Provider, path string, response []byte) {
		t.Run(strings.TrimPrefix(path, "testdata/calls/"), func(t *testing.T) {
			calls, err := p.Calls(response)
			if err != nil {
				golden(t, path, txtar.File{Name: "calls.json", Data: []byte("error: " + err.Error() + "\n")})
				return
			}
			raw, err := encode(calls, err)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path, txtar.File{Name: "calls.json", Data: pretty(t, raw)})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
