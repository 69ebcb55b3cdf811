package wire

import (
	"bufio"
	"encoding/binary"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/testenv/stage"
)

// decoder is a decoder of the launcher's in a process, built with sanitizers.
type decoder struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

func launchersDecoder(t testing.TB, sources ...string) *decoder {
	t.Helper()
	stage.Of(t, "launcher-check")
	program := filepath.Join(t.TempDir(), "decode")
	build := exec.Command("gcc", append([]string{
		"-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o", program,
	}, sources...)...)
	build.Dir = "../../launcher/check"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program)
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, said.String())
		}
	})
	return &decoder{in: in, out: bufio.NewReader(out)}
}

func (d *decoder) accepts(t testing.TB, kind byte, raw []byte) bool {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	message := append(binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(raw))), raw...)
	if _, err := d.in.Write(message); err != nil {
		t.Fatalf("the decoder has ended at %q: %v", raw, err)
	}
	answer, err := d.out.ReadByte()
	if err != nil {
		t.Fatalf("the decoder has ended at %q: %v", raw, err)
	}
	return answer == 1
}

// agree: the launcher takes what this package takes, but for a 0 in the midst of
// a text, which a path or an argument cannot have.
func (d *decoder) agree(t testing.TB, raw []byte) {
	t.Helper()
	o, err := decode(raw)
	if got, want := d.accepts(t, 'o', raw), err == nil && !o.hasZero(); got != want {
		t.Errorf("options %q: the launcher says %v, want %v", raw, got, want)
	}
	tool, err := decodeTool(raw)
	if got, want := d.accepts(t, 't', raw), err == nil && !tool.hasZero(); got != want {
		t.Errorf("tool %q: the launcher says %v, want %v", raw, got, want)
	}
	b, err := decodeBirth(raw)
	if got, want := d.accepts(t, 'b', raw), err == nil && !b.hasZero() && len(b.Stage) <= MaxBirthFiles; got != want {
		t.Errorf("birth %q: the launcher says %v, want %v", raw, got, want)
	}
}

func hasZero(texts ...string) bool { return strings.Contains(strings.Join(texts, ""), "\x00") }

func (o *Options) hasZero() bool {
	r := &o.Root
	texts := []string{o.SocketDir, r.Hostname, r.Workspace}
	for _, more := range [][]string{r.Masked, r.ReadOnly, r.Writable} {
		texts = append(texts, more...)
	}
	for _, m := range r.Mounts {
		texts = append(texts, m.Source, m.Target)
	}
	for _, l := range r.Links {
		texts = append(texts, l.Target, l.Path)
	}
	for _, f := range append(append([]Text{}, r.Files...), r.Sysctls...) {
		texts = append(texts, f.Path) // contents may have any byte
	}
	return hasZero(texts...) || o.Tool.hasZero()
}

func (t *Tool) hasZero() bool {
	return hasZero(slices.Concat([]string{t.Dir, t.Path}, t.Args, t.Env)...)
}

func (b *Birth) hasZero() bool {
	for _, s := range b.Stage {
		if hasZero(s.Source) {
			return true
		}
	}
	return false
}

func TestTheLaunchersDecoder(t *testing.T) {
	d := launchersDecoder(t, "decode.c", "../wire.c")
	for _, raw := range launcherSamples() {
		d.agree(t, raw)
		for n := range raw { // cut, and each byte changed
			d.agree(t, raw[:n])
			changed := append([]byte{}, raw...)
			changed[n] ^= 1
			d.agree(t, changed)
		}
	}
}

func launcherSamples() (samples [][]byte) {
	for _, o := range optionSamples {
		for _, raw := range [][]byte{o.Encode(), o.Tool.Encode()} {
			if len(raw) < 1<<12 {
				samples = append(samples, raw)
			}
		}
	}
	for _, b := range birthSamples {
		samples = append(samples, b.Encode())
	}
	return samples
}

func FuzzTheLaunchersDecoder(f *testing.F) {
	d := launchersDecoder(f, "decode.c", "../wire.c")
	for _, raw := range launcherSamples() {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { d.agree(t, raw) })
}
