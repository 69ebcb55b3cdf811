// Whether the TypeScript SDK hands on progress that comes in one piece with the result that it is for: prints what it
// hands on. node beside.mjs v1|v2, without any server.
const v2 = process.argv[2] === 'v2';
const { Client } = await import(v2 ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client/index.js');
const transport = {
  async start() {},
  async close() {},
  async send(m) {
    const answer = (result) => ({ jsonrpc: '2.0', id: m.id, result });
    if (m.method === 'initialize') {
      queueMicrotask(() => this.onmessage(answer({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } })));
    }
    if (m.method === 'tools/call') {
      setTimeout(() => {
        const token = m.params._meta.progressToken;
        const progress = (n) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: token, progress: n } });
        this.onmessage(progress(1));
        setTimeout(() => { // as the SDK's stdio transport does with what it reads at once
          this.onmessage(progress(2));
          this.onmessage(answer({ content: [] }));
        }, 10);
      }, 10);
    }
  },
};
const client = new Client({ name: 'c', version: '1' }, v2 ? { versionNegotiation: { mode: 'legacy' } } : {});
await client.connect(transport);
const handed = [];
const options = { onprogress: (p) => handed.push(p.progress) };
await (v2 ? client.callTool({ name: 't' }, options) : client.callTool({ name: 't' }, undefined, options));
await new Promise((done) => setTimeout(done, 50));
console.log(JSON.stringify(handed));
