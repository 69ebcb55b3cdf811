package mcpsuite

// popular is a server that people use, as npm has it: where it is, what is asked of
// it, and what of that must come back.
type popular struct {
	name, program string
	arguments     string            // of the command line, as YAML
	environment   string            // further entries of env
	reads         string            // further folders that it reads
	more          map[string]string // keys of its entry
	tools         int               // how many it lists at least
	use           []used
	// slow is a call that outlasts the tool's timeout; its partial result has left. A
	// server without such a tool is stopped before: it has hung.
	slow  used
	hangs bool
}

// used is a call of a tool, a prompt (with arguments) or a resource (a URI), and a part
// of the answer.
type used struct {
	tool, prompt, resource string
	arguments              map[string]any
	want                   string
}

type args = map[string]any

// FOLDER stands for a folder that the server is granted, with a FIFO named pipe, a
// workbook and a repository whose status never comes.
var servers = []popular{
	{
		name: "files", program: "@modelcontextprotocol/server-filesystem/dist/index.js", arguments: "FOLDER", tools: 12,
		use: []used{
			{tool: "write_file", arguments: args{"path": "FOLDER/new.txt", "content": "ordinary"}, want: "Successfully wrote"},
			{tool: "read_text_file", arguments: args{"path": "FOLDER/new.txt"}, want: "ordinary"},
		},
		slow: used{tool: "read_media_file", arguments: args{"path": "FOLDER/pipe"}},
	},
	{
		name: "memory", program: "@modelcontextprotocol/server-memory/dist/index.js", more: map[string]string{"data": "true", "keep": "true"}, environment: ", MEMORY_FILE_PATH: /workspace/m.jsonl", tools: 9,
		use: []used{
			{tool: "create_entities", arguments: args{"entities": []any{args{"name": "Ada", "entityType": "person", "observations": []any{"wrote notes"}}}}, want: "wrote notes"},
			{tool: "search_nodes", arguments: args{"query": "notes"}, want: "Ada"},
		},
		slow: used{tool: "read_graph"}, hangs: true,
	},
	{
		name: "everything", program: "@modelcontextprotocol/server-everything/dist/index.js", tools: 10,
		use: []used{
			{tool: "get-annotated-message", arguments: args{"messageType": "error", "includeImage": true}, want: "Error"},
			{prompt: "args-prompt", arguments: args{"city": "Riga"}, want: "Riga"},
			{resource: "demo://resource/dynamic/text/7", want: "Resource 7"},
			{resource: "demo://resource/static/document/features.md", want: "Features"},
		},
		slow: used{tool: "trigger-long-running-operation", arguments: args{"duration": 60, "steps": 120}, want: "the last progress was"},
	},
	{
		name: "thinking", program: "@modelcontextprotocol/server-sequential-thinking/dist/index.js", more: map[string]string{"keep": "true"}, tools: 1,
		use:  []used{{tool: "sequentialthinking", arguments: thought, want: "thoughtHistoryLength"}},
		slow: used{tool: "sequentialthinking", arguments: thought}, hangs: true,
	},
	{
		name: "playwright", program: "@playwright/mcp/cli.js", arguments: "--headless, --isolated, --no-sandbox, --executable-path, /usr/bin/chromium", more: browser, reads: browserReads, tools: 20,
		use:  []used{{tool: "browser_navigate", arguments: args{"url": "data:text/html,<title>ordinary</title>"}, want: "Page Title: ordinary"}},
		slow: used{tool: "browser_evaluate", arguments: args{"function": "() => new Promise(() => {})"}},
	},
	{
		name: "devtools", program: "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", arguments: "--headless, --isolated, --executablePath, /usr/bin/chromium, --chromeArg=--no-sandbox", more: browser, reads: browserReads, tools: 20,
		use:  []used{{tool: "new_page", arguments: args{"url": "data:text/html,ordinary"}, want: "ordinary"}},
		slow: used{tool: "evaluate_script", arguments: args{"function": "() => new Promise(() => {})", "pageId": 1}},
	},
	{
		name: "git", program: "@cyanheads/git-mcp-server/dist/index.js", tools: 20,
		use: []used{
			{tool: "git_log", arguments: args{"path": "FOLDER/repository"}, want: "the first commit"},
			{prompt: "git_wrapup", arguments: args{"createTag": "false"}, want: "git"},
			{resource: "git://working-directory", want: "workingDirectory"},
		},
		slow: used{tool: "git_status", arguments: args{"path": "FOLDER/repository"}},
	},
	{
		name: "commander", program: "@wonderwhy-er/desktop-commander/dist/index.js", more: map[string]string{"pids": "128", "output": "4MiB"}, tools: 20,
		use: []used{
			{tool: "start_process", arguments: args{"command": "echo $((6*7))", "timeout_ms": 5000}, want: "42"},
			{resource: "ui://desktop-commander/file-preview", want: "text/html;profile=mcp-app"},
		},
		slow: used{tool: "start_process", arguments: args{"command": "trap '' TERM; echo begun; sleep 1000", "timeout_ms": 600000}}, // or its end, before the server's, is a result
	},
	{
		name: "budget", program: "@modelcontextprotocol/server-budget-allocator/dist/index.js", arguments: "--stdio", more: map[string]string{"keep": "true"}, tools: 1,
		use:  []used{{tool: "get-budget-data", want: "Marketing"}, {resource: "ui://budget-allocator/mcp-app.html", want: "Budget Allocator"}},
		slow: used{tool: "get-budget-data"}, hangs: true,
	},
	{
		name: "context7", program: "@upstash/context7-mcp/dist/index.js", more: map[string]string{"keep": "true"}, tools: 2, // it has no network
		use:  []used{{tool: "resolve-library-id", arguments: args{"libraryName": "go", "query": "slices"}, want: "fetch failed"}},
		slow: used{tool: "resolve-library-id", arguments: args{"libraryName": "go", "query": "slices"}}, hangs: true,
	},
	{
		name: "commands", program: "@agent-infra/mcp-server-commands/dist/index.cjs", tools: 2,
		use:  []used{{tool: "run_command", arguments: args{"command": "echo $((6*7))"}, want: "42"}},
		slow: used{tool: "run_command", arguments: args{"command": "echo begun; sleep 1000"}},
	},
	{
		name: "excel", program: "@negokaz/excel-mcp-server/dist/launcher.js", tools: 6,
		use: []used{
			{tool: "excel_write_to_sheet", arguments: args{"fileAbsolutePath": "FOLDER/book.xlsx", "sheetName": "Sheet1", "newSheet": false, "range": "A1:B1", "values": []any{[]any{"ordinary", 7}}}, want: "ordinary"},
			{tool: "excel_describe_sheets", arguments: args{"fileAbsolutePath": "FOLDER/book.xlsx"}, want: "Sheet1"},
		},
		slow: used{tool: "excel_read_sheet", arguments: args{"fileAbsolutePath": "FOLDER/pipe", "sheetName": "Sheet1"}},
	},
}

var thought = args{"thought": "a thought", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}

const browserReads = ", /etc/chromium, /etc/chromium.d, /etc/fonts"

var browser = map[string]string{"pids": "512", "memory": "2GiB"}
