// What Node programs do: files, children, worker threads, a server on loopback.
const assert = require("node:assert");
const { execFileSync, spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs/promises");
const http = require("node:http");
const { Worker } = require("node:worker_threads");

async function main() {
  await fs.writeFile("file", "text");
  assert.equal(await fs.readFile("file", "utf8"), "text");
  await fs.copyFile("file", "copy");
  await fs.rm("copy");
  assert.equal(execFileSync("echo", ["child"], { encoding: "utf8" }), "child\n");
  const [code] = await once(spawn("true"), "exit");
  assert.equal(code, 0);
  const worker = new Worker("require('node:worker_threads').parentPort.postMessage(42)", { eval: true });
  assert.deepEqual(await once(worker, "message"), [42]);
  const server = http.createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${server.address().port}/`);
  assert.equal(await response.text(), "hello");
  server.closeAllConnections();
  server.close();
  console.log("ok");
}

main();
