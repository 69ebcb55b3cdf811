package test

import (
	"os/exec"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

// The tool writes the contract in its own words; they must be the contract's.
func TestContractIsTheContract(t *testing.T) {
	load := "import importlib.machinery, importlib.util, sys\n" +
		"loader = importlib.machinery.SourceFileLoader('outline', sys.argv[1])\n" +
		"module = importlib.util.module_from_spec(importlib.util.spec_from_loader('outline', loader))\n" +
		"loader.exec_module(module)\n" +
		"sys.stdout.buffer.write(module.file_descriptor().SerializeToString())"
	raw, err := exec.Command(python, "-I", "-B", "-c", load, tool(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var file descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	described, err := protodesc.NewFile(&file, new(protoregistry.Files))
	if err != nil {
		t.Fatal(err)
	}
	messages := described.Messages()
	if messages.Len() == 0 {
		t.Fatal("no messages")
	}
	for i := range messages.Len() {
		compare(t, messages.Get(i))
	}
}

// compare holds one message against that of plugin.proto.
func compare(t *testing.T, own protoreflect.MessageDescriptor) {
	t.Helper()
	real := pluginv1.File_plugin_proto_v1_plugin_proto.Messages().ByName(own.Name())
	if real == nil {
		t.Errorf("there is no message %s", own.Name())
		return
	}
	for i := range own.Fields().Len() {
		field := own.Fields().Get(i)
		want := real.Fields().ByName(field.Name())
		if want == nil || field.Number() != want.Number() || field.IsList() != want.IsList() || kind(field) != kind(want) {
			t.Errorf("%s: got number %d, %s; want %v", field.FullName(), field.Number(), kind(field), want)
		}
	}
}

// kind is that of a field on the wire: an enum is an int32.
func kind(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.EnumKind:
		return protoreflect.Int32Kind.String()
	case protoreflect.MessageKind:
		return string(f.Message().FullName())
	}
	return f.Kind().String()
}
