# An MCP server of 2025-11-25 that is hostile in one way: hostile.py WAY. Its tool "ok" is answered decently, if it can be.
import json, os, sys

WAY = sys.argv[1]
PLAIN = {"type": "object"}
LONG = "far://" + "u" * (1 << 20)
out = sys.stdout.buffer


def say(**message):
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode())


def raw(line):
    out.write(line + b"\n")
    out.flush()


def text(id, words):
    say(id=id, result={"content": [{"type": "text", "text": words}]})


def tools(p):
    if WAY == "tools":
        return {"tools": [{"name": "ok", "inputSchema": PLAIN}] + [{"name": "t%d" % i, "inputSchema": PLAIN} for i in range(100000)]}
    if WAY == "pages":
        at = int(p.get("cursor") or 0)
        return {"tools": [{"name": "ok", "inputSchema": PLAIN}] if at == 0 else [], "nextCursor": str(at + 1)}
    if WAY == "circle":
        return {"tools": [{"name": "ok", "inputSchema": PLAIN}], "nextCursor": {None: "a", "a": "b", "b": "a"}[p.get("cursor")]}
    return {"tools": [{"name": n, "inputSchema": PLAIN} for n in ("ok", "do")]}


def do(id, p):
    """The hostile thing, in a call of the tool "do"."""
    token = p["_meta"].get("progressToken")
    if WAY == "line":
        out.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id)
        for _ in range(100):
            out.write(b"x" * (1 << 20))
        return raw(b'"}]}}')
    if WAY == "ids":
        for other in (id + 1, id + 1000, 0, -1, "x", 2 ** 60):
            text(other, "of nobody")
        text(id, "the first")
        return text(id, "the second")
    if WAY == "asks":
        say(id="a", method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
        say(id="b", method="elicitation/create", params={"mode": "url", "message": "m", "url": "https://example.com"})
        say(id="c", method="shell/run", params={"command": "id"})
        say(id="d", method="elicitation/create")
        got = {}
        while len(got) < 4:
            m = json.loads(sys.stdin.readline())
            got[m.get("id")] = "error" if "error" in m else m["result"].get("action", "result")
        return text(id, json.dumps(got, sort_keys=True))
    if WAY == "utf8":
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\xff\xfeb"},{"type":"resource","resource":{"uri":"u:\xff","text":"\xc3("}}],"structuredContent":{"k\xff":"\xed\xa0\x80"}}}' % id)
    if WAY == "deep":
        n = 5000
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"t","_meta":{"d":%s%s}}],"structuredContent":%s%s}}' % (id, b"[" * n, b"]" * n, b'{"a":' * n + b"1", b"}" * n))
    if WAY == "keys":
        return raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"one","text":"two"}],"isError":true,"isError":false}}' % id)
    if WAY == "dies":
        out.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"te' % id)
        out.flush()
        os._exit(3)
    if WAY == "uri":
        return say(id=id, result={"content": [{"type": "resource_link", "uri": LONG, "name": "n"}, {"type": "resource", "resource": {"uri": LONG, "text": "t"}}]})
    if WAY == "notices":
        for i in range(5000):
            say(method="notifications/progress", params={"progressToken": token, "progress": i, "message": "m" * 100})
            say(method="notifications/message", params={"level": "info", "data": "d" * 100})
            say(method="notifications/resources/updated", params={"uri": "far://%d" % i})
            say(method="notifications/tools/list_changed")
            say(method="notifications/made/up", params={"x": "y" * 100})
        return text(id, "flooded")
    text(id, "done")


def answer(method, p):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "serverInfo": {"name": "hostile", "version": "1"}, "capabilities": {
            "tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}, "logging": {}}}
    if method == "tools/list":
        return tools(p)
    if method == "resources/list":
        return {"resources": [{"uri": LONG if WAY == "uri" else "far://" + WAY, "name": "r"}]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read":
        return {"contents": [{"uri": p["uri"], "text": str(len(p["uri"]))}]}
    if method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
        return {}
    return None


for line in sys.stdin:
    m = json.loads(line)
    method, p, id = m.get("method"), m.get("params") or {}, m.get("id")
    if id is None or method is None:
        continue
    if method == "tools/call" and p["name"] == "do":
        do(id, p)
    elif method == "tools/call":
        text(id, "ok")
    else:
        result = answer(method, p)
        if result is None:
            say(id=id, error={"code": -32601, "message": "unknown"})
        else:
            say(id=id, result=result)
