// Calls a tool as the TypeScript SDK does, and prints what came back as JSON.
// node client.mjs '{"tool":...,"arguments":{...},"elicit":"accept","cancelAfterProgress":true,"timeout":ms}' COMMAND ARG... | URL
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [plan, command, ...args] = process.argv.slice(2);
const { tool, arguments: given, elicit, cancelAfterProgress, timeout } = JSON.parse(plan);
const client = new Client({ name: 'typescript', version: '1' }, { capabilities: elicit ? { elicitation: {} } : {} });
const asked = [];
if (elicit) {
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    return { action: elicit, content: {} };
  });
}
const transport = /^http/.test(command)
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });
await client.connect(transport);
const { tools } = await client.listTools();
const progress = [];
const abort = new AbortController();
const options = {
  timeout,
  signal: abort.signal,
  onprogress: (p) => {
    progress.push(p);
    if (cancelAfterProgress) abort.abort();
  },
};
let result, error;
try {
  result = await client.callTool({ name: tool, arguments: given }, undefined, options);
} catch (e) {
  error = String(e);
}
console.log(JSON.stringify({ tools: tools.map((t) => t.name), progress, asked, result, error }));
await client.close();
