package host

import (
	"fmt"
	"reflect"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

const (
	// fieldCost is about what a field takes beside its own bytes: a slice or a
	// string, its allocation, and its place in a list that has grown.
	fieldCost = 64
	// packedCost is that of an element of a packed list, which has a byte at least.
	packedCost = 16
	// maxNesting bounds messages within messages.
	maxNesting = 16
)

// price says about how many bytes of memory a message takes once it is decoded,
// without decoding it: a message within a message has two bytes on the wire and a
// hundred times that in memory. Fields that the message's type does not have are
// for nothing, for they are not kept. It stops where the price is above limit.
func price(wire []byte, of protoreflect.MessageDescriptor, limit int64) (int64, error) {
	p := pricer{limit: limit}
	err := p.message(wire, of, 0)
	return p.total, err
}

type pricer struct{ total, limit int64 }

func (p *pricer) pay(bytes int) error {
	if p.total += int64(bytes); p.total > p.limit {
		return fmt.Errorf("it would take more than %d bytes of memory once it is decoded: send fewer and larger parts", p.limit)
	}
	return nil
}

func (p *pricer) message(wire []byte, of protoreflect.MessageDescriptor, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("its messages are nested deeper than %d", maxNesting)
	}
	if err := p.pay(structBytes(of)); err != nil {
		return err
	}
	for len(wire) > 0 {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return protowire.ParseError(n)
		}
		wire = wire[n:]
		if kind == protowire.StartGroupType || kind == protowire.EndGroupType {
			return fmt.Errorf("its field %d is a group, which proto3 does not have", number)
		}
		if n = protowire.ConsumeFieldValue(number, kind, wire); n < 0 {
			return protowire.ParseError(n)
		}
		if err := p.field(wire[:n], kind, of.Fields().ByNumber(number), depth); err != nil {
			return err
		}
		wire = wire[n:]
	}
	return nil
}

// field is paid for each time that it is there, also where the last one counts.
func (p *pricer) field(value []byte, kind protowire.Type, of protoreflect.FieldDescriptor, depth int) error {
	if of == nil {
		return nil
	}
	if kind != protowire.BytesType {
		return p.pay(fieldCost)
	}
	content, _ := protowire.ConsumeBytes(value)
	switch of.Kind() {
	case protoreflect.MessageKind:
		if err := p.pay(fieldCost); err != nil {
			return err
		}
		return p.message(content, of.Message(), depth+1)
	case protoreflect.StringKind, protoreflect.BytesKind:
		return p.pay(fieldCost + len(content))
	}
	return p.pay(fieldCost + packedCost*len(content))
}

var structSizes sync.Map // of protoreflect.FullName

// structBytes is the size of the Go type of a message.
func structBytes(of protoreflect.MessageDescriptor) int {
	if size, known := structSizes.Load(of.FullName()); known {
		return size.(int)
	}
	size := 512 // more than any of them has
	if t, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName()); err == nil {
		size = int(reflect.TypeOf(t.Zero().Interface()).Elem().Size())
	}
	structSizes.Store(of.FullName(), size)
	return size
}
