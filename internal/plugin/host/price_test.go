package host

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

func TestPrice(t *testing.T) {
	const limit = 8 << 20
	events := (&pluginv1.CallEvent{}).ProtoReflect().Descriptor()
	describes := (&pluginv1.DescribeResponse{}).ProtoReflect().Descriptor()
	blob := encoded(t, contentEvent(1, &pluginv1.Content{Content: &pluginv1.Content_Blob{Blob: &pluginv1.Blob{Data: make([]byte, 4<<20-64)}}}))
	if cost, err := price(blob, events, limit); err != nil || cost > 5<<20 {
		t.Errorf("one large blob: %d, %v", cost, err)
	}
	many := &pluginv1.DescribeResponse{}
	for range 1024 {
		many.Tools = append(many.Tools, &pluginv1.ToolDescription{
			Name: "name", Title: "title", Description: strings.Repeat("x", 1000), InputSchema: bytes.Repeat([]byte("x"), 2000),
			Annotations: &pluginv1.Annotations{ReadOnly: new(true)}, Wish: &pluginv1.SandboxWish{Read: []string{"/a", "/b"}},
		})
	}
	if cost, err := price(encoded(t, many), describes, limit); err != nil {
		t.Errorf("all the tools that a binary may have: %d, %v", cost, err)
	}
	for name, raw := range map[string][]byte{
		"empty tools":     bytes.Repeat(field(2, nil), 2_000_000),
		"empty warnings":  bytes.Repeat(field(4, nil), 2_000_000),
		"one field again": bytes.Repeat(field(1, nil), 2_000_000),
		"the error again": bytes.Repeat(field(3, nil), 2_000_000),
		"empty wishes":    field(2, field(10, bytes.Repeat(field(1, nil), 1_900_000))),
		"annotations":     field(2, bytes.Repeat(field(6, nil), 1_900_000)),
		"varints":         field(2, field(8, bytes.Repeat([]byte{0x08, 0x00}, 1_900_000))),
	} {
		if cost, err := price(raw, describes, limit); err == nil || cost > limit+1<<20 {
			t.Errorf("%s: %d, %v", name, cost, err)
		}
	}
	for name, raw := range map[string][]byte{
		"a group":         protowire.AppendTag(nil, 15, protowire.StartGroupType),
		"groups in one":   bytes.Repeat(protowire.AppendTag(nil, 15, protowire.StartGroupType), 5000),
		"a lost end":      protowire.AppendTag(nil, 2, protowire.EndGroupType),
		"a cut field":     {0x12, 0x7f},
		"a tag of none":   {0x00},
		"an endless tag":  bytes.Repeat([]byte{0xff}, 20),
		"an endless size": append([]byte{0x12}, bytes.Repeat([]byte{0xff}, 20)...),
	} {
		if _, err := price(raw, describes, limit); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if cost, err := price(bytes.Repeat(field(99, nil), 1_000_000), describes, limit); err != nil || cost > 4096 {
		t.Errorf("unknown fields: %d, %v", cost, err)
	}
}

// The price is never much below what decoding allocates.
func TestPriceCoversDecoding(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		d := &pluginv1.DescribeResponse{Version: "v"}
		for range random.IntN(200) {
			tool := &pluginv1.ToolDescription{Name: strings.Repeat("n", random.IntN(20)), InputSchema: make([]byte, random.IntN(100))}
			if random.IntN(2) == 0 {
				tool.Annotations = &pluginv1.Annotations{ReadOnly: new(true), OpenWorld: new(false)}
				tool.Wish = &pluginv1.SandboxWish{Read: make([]string, random.IntN(40))}
			}
			d.Tools = append(d.Tools, tool)
		}
		d.Warnings = make([]string, random.IntN(500))
		raw := encoded(t, d)
		cost, err := price(raw, d.ProtoReflect().Descriptor(), 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		if took := allocates(func() { _ = proto.Unmarshal(raw, &pluginv1.DescribeResponse{}) }); took > uint64(cost)+4096 {
			t.Fatalf("%d bytes of memory for a price of %d", took, cost)
		}
	}
}

func allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What is refused by its form cannot be decoded either.
func FuzzPrice(f *testing.F) {
	f.Add([]byte{0x12, 0x00}, true)
	f.Add([]byte{0x1a, 0x04, 0x0a, 0x02, 'h', 'i'}, false)
	f.Fuzz(func(t *testing.T, raw []byte, describe bool) {
		var m proto.Message = &pluginv1.CallEvent{}
		if describe {
			m = &pluginv1.DescribeResponse{}
		}
		_, refused := price(raw, m.ProtoReflect().Descriptor(), 1<<30)
		err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, m)
		if refused != nil && err == nil && !strings.Contains(refused.Error(), "group") {
			t.Fatalf("%x is refused (%v), and can be decoded", raw, refused)
		}
	})
}

// counted is a Memory of so many bytes, or of any number.
type counted struct {
	mu                sync.Mutex
	used, most, limit int64
}

var errFull = errors.New("full")

func (m *counted) Try(n int64) bool { return m.Take(context.Background(), n) == nil }

func (m *counted) Take(_ context.Context, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limit > 0 && m.used+n > m.limit {
		return errFull
	}
	m.used += n
	m.most = max(m.most, m.used)
	return nil
}

func (m *counted) Give(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
}

func (m *counted) now() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

func TestDecoder(t *testing.T) {
	wire := encoded(t, text(1))
	decode := func(memory Memory, raw []byte) (*decoder, error) {
		d := &decoder{ctx: t.Context(), memory: memory, limit: maxDecodedBytes}
		return d, d.decode(raw, &pluginv1.CallEvent{})
	}
	memory := &counted{}
	d, err := decode(memory, wire)
	if err != nil || memory.used == 0 {
		t.Fatalf("%v, %d bytes are held for the message", err, memory.used)
	}
	d.release()
	if memory.used != 0 {
		t.Errorf("%d bytes are left", memory.used)
	}
	_, err = decode(&counted{limit: 1}, wire)
	if _, ok := errors.AsType[*MemoryError](err); !ok {
		t.Errorf("without memory: %v", err)
	}
	memory = &counted{}
	d, err = decode(memory, bytes.Repeat(field(3, nil), 1_000_000))
	if _, ok := errors.AsType[*ProtocolError](err); !ok || memory.most > 4<<20 {
		t.Errorf("a million fields: %v, %d bytes were taken", err, memory.most)
	}
	if d.release(); memory.used != 0 {
		t.Errorf("%d bytes are left", memory.used)
	}
}
