// What a client of the TypeScript SDK sees of toolhost, as JSON: node typescript.mjs PLAN. See use_test.go.
const plan = JSON.parse(process.argv[2]);
const v2 = plan.client === 'v2';
const from = (name) => import(v2 ? `@modelcontextprotocol/client${name.v2}` : `@modelcontextprotocol/sdk/${name.v1}`);
const { Client } = await from({ v2: '', v1: 'client/index.js' });
const { StdioClientTransport } = await from({ v2: '/stdio', v1: 'client/stdio.js' });
const { StreamableHTTPClientTransport } = await from({ v2: '', v1: 'client/streamableHttp.js' });
const client = new Client({ name: 'typescript', version: '1' }, {
  capabilities: { elicitation: {}, sampling: {} },
  ...(v2 && { versionNegotiation: { mode: plan.version >= '2026-07-28' ? { pin: plan.version } : 'legacy' } }),
});
const types = v2 ? {} : await import('@modelcontextprotocol/sdk/types.js');
client.setRequestHandler(v2 ? 'elicitation/create' : types.ElicitRequestSchema, () => ({ action: 'accept', content: { user_name: 'Ada' } }));
client.setRequestHandler(v2 ? 'sampling/createMessage' : types.CreateMessageRequestSchema,
  () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } }));
const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers: { Authorization: `Bearer ${plan.token}` } } })
  : new StdioClientTransport({ command: plan.command[0], args: plan.command.slice(1), env: process.env, stderr: 'inherit' });
await client.connect(transport);

// What the transport hands over, and in which turn of the event loop: of messages in one piece of a pipe the
// SDK drops progress beside the result that it is for (see beside.mjs).
let turn = 0;
let arrived = [];
const handle = transport.onmessage;
transport.onmessage = (m, extra) => {
  queueMicrotask(() => turn++);
  if (m.method === 'notifications/progress') arrived.push({ turn, message: m.params.message });
  if (m.result !== undefined) arrived.push({ turn, result: true });
  handle(m, extra);
};

const call = (name, given = {}, options = undefined) => {
  const params = { name, arguments: given };
  return v2 ? client.callTool(params, options) : client.callTool(params, undefined, options);
};
const text = (r) => r.content.map((c) => c.text ?? '').join('');
const of = (tool) => `${plan.server}__${tool}`;
const seen = { protocol: v2 ? client.getNegotiatedProtocolVersion() : transport.protocolVersion ?? '', progress: [], parallel: 0 };
arrived = [];
const handed = [];
await call(of('progress'), {}, { onprogress: (p) => handed.push(p.message) });
const result = arrived.findIndex((m) => m.result);
const before = arrived.slice(0, result);
seen.progress = before.map((m) => m.message);
seen.lost = before.filter((m) => m.turn !== arrived[result].turn && !handed.includes(m.message)).map((m) => m.message);
const abort = new AbortController();
try {
  await call(of('hang'), { mark: plan.mark }, { signal: abort.signal, onprogress: () => abort.abort() });
} catch (e) {
  seen.cancelled = String(e);
}
seen.form = text(await call(of('form')));
seen.sample = text(await call(of('sample')));
const words = Array.from({ length: 50 }, (_, i) => `word ${i}`);
const said = await Promise.all(words.map((w) => call(of('echo'), { text: w })));
seen.parallel = said.filter((r, i) => text(r) === words[i]).length;
seen.flood = text(await call('flood'));
seen.wide = text(await call(of('wide'))).length;
const written = JSON.stringify(seen);
await client.close();
console.log(written);
