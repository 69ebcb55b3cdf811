package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/toolhost/toolhost/plugin/proto/v1"
)

func TestCommandExit(t *testing.T) {
	toolError := func(kind pluginv1.ToolError_Kind, message string) *pluginv1.Result {
		return &pluginv1.Result{Error: &pluginv1.ToolError{Kind: kind, Message: message}}
	}
	for _, test := range []struct {
		exit *CommandExit
		text string
		want *pluginv1.Result
	}{
		{
			&CommandExit{Code: 3}, "the command exited with status 3",
			&pluginv1.Result{Exit: &pluginv1.CommandExit{Code: 3}},
		},
		{
			&CommandExit{Signal: "SIGSEGV"}, "the command died of SIGSEGV",
			&pluginv1.Result{Exit: &pluginv1.CommandExit{Signal: "SIGSEGV"}},
		},
		{
			&CommandExit{Missing: true, Err: fs.ErrNotExist}, "file does not exist",
			toolError(pluginv1.ToolError_KIND_COMMAND_NOT_FOUND, "file does not exist"),
		},
		{
			&CommandExit{NotExecutable: true, Err: fmt.Errorf("\xff: %w", fs.ErrPermission)}, "\xff: permission denied",
			toolError(pluginv1.ToolError_KIND_COMMAND_NOT_EXECUTABLE, "\uFFFD: permission denied"),
		},
	} {
		if got := test.exit.Error(); got != test.text {
			t.Errorf("error %q, want %q", got, test.text)
		}
		if test.exit.Err != nil && !errors.Is(test.exit, test.exit.Err) {
			t.Errorf("%v does not wrap its error", test.exit)
		}
		x := tool("x", func(context.Context, *Output) error { return fmt.Errorf("wrapped: %w", test.exit) })
		if got := runTool(t.Context(), x, nil, nil); !proto.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.exit, got, test.want)
		}
	}
}
