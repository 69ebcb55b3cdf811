# An MCP server of 2025-11-25 that has everything a server may have, two tools a page.
import json, sys

LATER = {"z": 12345678901234567890, "a": None, "m": {"y": 1.10, "b": []}}  # of a later revision
TITLED = {"later": LATER, "title": "A title", "icons": [{"src": "data:image/png;base64,AA==", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}], "_meta": {"odd/key": {"n": 12345678901234567890}}}
EVERY = [
    {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 0.25, "lastModified": "2026-01-01T00:00:00Z"}, "_meta": {"a": 1}, "later": LATER, "nothing": None},
    {"type": "image", "data": "AA==", "mimeType": "image/png", "annotations": {"audience": ["assistant"]}, "_meta": {"b": 2}},
    {"type": "audio", "data": "AQ==", "mimeType": "audio/wav", "annotations": {"priority": 1}, "_meta": {"c": 3}},
    {"type": "resource_link", "uri": "odd://link", "name": "link", "description": "d", "mimeType": "text/plain", "size": 7, "annotations": {"priority": 0.5}, **TITLED},
    {"type": "resource", "resource": {"uri": "odd://text", "mimeType": "text/plain", "text": "embedded", "_meta": {"d": 4}, "later": LATER}, "annotations": {"priority": 0.75}, "_meta": {"e": 5}},
    {"type": "resource", "resource": {"uri": "odd://blob", "mimeType": "application/octet-stream", "blob": "Ag==", "_meta": {"f": 6}}},
    {"type": "text", "text": "{}", "mimeType": "application/json", "data": {"x": 1}, "name": 5},
]
PLAIN = {"type": "object"}
TOOLS = [
    {"name": "every", "description": "d", "inputSchema": PLAIN, "annotations": {"title": "Annotated", "readOnlyHint": True, "openWorldHint": False}, **TITLED},
    {"name": "list", "inputSchema": PLAIN, "outputSchema": {"type": "array", "items": {"type": "integer"}}},
    {"name": "nothing", "inputSchema": PLAIN, "outputSchema": {"type": ["null", "string"]}},
    {"name": "object", "inputSchema": PLAIN, "outputSchema": {"type": "object", "properties": {"n": {"type": "number"}}}},
    {"name": "failing", "inputSchema": PLAIN},
    {"name": "shown", "inputSchema": PLAIN, "_meta": {"ui": {"resourceUri": "ui://odd/view.html", "visibility": ["model"]}}},
    {"name": "slow", "inputSchema": PLAIN},
    {"name": "told", "inputSchema": PLAIN},
]
RESULTS = {
    "every": {"content": EVERY, "_meta": {"odd/result": [1.5, None]}, "later": LATER},
    "list": {"content": [], "structuredContent": [1, 2]},
    "nothing": {"content": [], "structuredContent": None},
    "object": {"content": [{"type": "text", "text": "n"}], "structuredContent": {"n": 12345678901234567890}},
    "failing": {"content": EVERY[:1], "structuredContent": {"why": "so"}, "isError": True},
    "shown": {"content": [{"type": "text", "text": "see"}], "_meta": {"ui": {"k": 1}}},
}
CONTENTS = {
    "ui://odd/view.html": {"mimeType": "text/html;profile=mcp-app", "text": "<html></html>", "name": "view", "later": LATER, "_meta": {"ui": {"csp": {"connectDomains": ["https://example.com"]}}}},
    "odd://large": {"mimeType": "text/plain", "text": "x" * 2000000},
}


def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(id, method, p):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "extensions": {"io.modelcontextprotocol/ui": {}}},
                "serverInfo": {"name": "odd", "version": "1"}, "instructions": "Ask for every first."}
    if method == "tools/list":
        at = int(p.get("cursor") or 0)
        return {"tools": TOOLS[at:at + 2], **({"nextCursor": str(at + 2)} if at + 2 < len(TOOLS) else {})}
    if method == "resources/list":
        if not p.get("cursor"):
            return {"resources": [], "nextCursor": "next"}
        return {"resources": [{"uri": uri, "name": uri, "size": 9, "annotations": {"priority": 0.5}, "mimeType": one["mimeType"], **TITLED} for uri, one in CONTENTS.items()]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "odd://{x}", "name": "t", "annotations": {"priority": 0.5}, **TITLED}]}
    if method == "resources/read" and p["uri"] in CONTENTS:
        return {"contents": [{"uri": p["uri"], **CONTENTS[p["uri"]]}], "later": LATER, "_meta": {"odd/read": LATER}}
    if method == "completion/complete":
        return {"completion": {"values": [], "total": 0, "later": LATER}, "later": LATER}
    if method == "prompts/list":
        return {"prompts": [{"name": "p", "arguments": [{"name": "x", "title": "X", "required": True}], **TITLED}]}
    if method == "prompts/get":
        return {"description": "d", "messages": [{"role": "user", "content": one, "later": LATER} for one in EVERY], "_meta": {"odd/prompt": LATER, "odd/sent": p["_meta"].get("odd/sent")}, "later": LATER}
    if method == "tools/call" and p["name"] == "told":
        return {"content": [{"type": "text", "text": json.dumps([p["_meta"].get("odd/sent"), p["arguments"]])}]}
    if method == "tools/call" and p["name"] in RESULTS:
        return RESULTS[p["name"]]
    return None


print("a greeting that is no message", flush=True)
say(method="notifications/message", params={"level": "info", "data": "before initialize"})
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m or "method" not in m:
        continue
    if m["method"] == "tools/call" and m["params"]["name"] == "slow":
        say(method="notifications/progress", params={"progressToken": m["params"]["_meta"]["progressToken"], "progress": 1, "total": 4, "message": "a part"})
        continue
    result = answer(m["id"], m["method"], m.get("params") or {})
    if result is None:
        say(id=m["id"], error={"code": -32601, "message": "unknown"})
    else:
        say(id=m["id"], result=result)
