# An MCP server that asks its client for things and announces changes, as one generation of the protocol has it:
# asks.py old speaks 2025-11-25 alone, asks.py new 2026-07-28 alone.
import json, subprocess, sys

NEW = sys.argv[1] == "new"
PLAIN = {"type": "object"}
FORM = {"type": "object", "properties": {"user_name": {"type": "string"}}, "required": ["user_name"]}
TOOLS = ["echo", "progress", "hang", "form", "sample", "roots", "open", "log", "tick", "grow", "changes", "wide", "ask", "slow", "cancelled"]
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
QUESTIONS = {
    "form": ("elicitation/create", {"mode": "form", "message": "Who are you?", "requestedSchema": FORM}),
    "open": ("elicitation/create", {"mode": "url", "message": "Sign in", "url": "https://example.com/sign?in=1", **({} if NEW else {"elicitationId": "e-1"})}),
    "sample": ("sampling/createMessage", {"messages": [{"role": "user", "content": {"type": "text", "text": "capital of France?"}}], "maxTokens": 20}),
    "roots": ("roots/list", {}),
}

level = None  # as logging/setLevel has set it
grown = ticks = roots_changed = asked = cancelled = 0
subscribed = set()  # of the old protocol
streams = {}  # of the new one: what a request listens to
waiting = {}  # an old server's own requests: id to the call
held = set()  # calls without an answer


def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(id, words):
    say(id=id, result={"content": [{"type": "text", "text": words}], **({"resultType": "complete"} if NEW else {})})


def answered(tool, given):
    if tool == "ask":
        return json.dumps(given)
    if tool in ("form", "open"):
        return " ".join([given["action"]] + list((given.get("content") or {}).values()))
    if tool == "sample":
        content = given["content"]
        return content["text"] if isinstance(content, dict) else content[0]["text"]
    return " ".join(r["uri"] for r in given["roots"])


def ask(id, tool, p):
    global asked
    method, params = QUESTIONS.get(tool) or p["arguments"]["request"]
    given = (p.get("inputResponses") or {}).get("the_key")
    if given is not None and p.get("requestState") != "state of " + tool:
        say(id=id, error={"code": -32602, "message": "the requestState is not mine"})
    elif given is not None:
        text(id, answered(tool, given))
    elif NEW:
        say(id=id, result={"resultType": "input_required", "requestState": "state of " + tool, "inputRequests": {"the_key": {"method": method, "params": params}}})
    else:
        asked += 1
        waiting["ask-%d" % asked] = (id, tool)
        say(id="ask-%d" % asked, method=method, params=params)


def announce(method, wants, **params):
    if not NEW:
        say(method=method, params=params)
        return
    for id, listens in streams.items():
        if wants(listens):
            say(method=method, params={**params, "_meta": {SUBSCRIPTION: id}})


def call(id, p):
    global grown, ticks
    tool, given, meta = p["name"], p.get("arguments") or {}, p.get("_meta") or {}
    if tool in QUESTIONS or tool == "ask":
        ask(id, tool, p)
    elif tool == "slow":  # until it is cancelled
        say(method="notifications/progress", params={"progressToken": meta["progressToken"], "progress": 1, "message": "began"})
        held.add(id)
    elif tool in ("progress", "hang"):
        for i in range(3):
            say(method="notifications/progress", params={"progressToken": meta["progressToken"], "progress": i + 1, "total": 3, "message": "step %d" % (i + 1)})
        if tool == "hang":
            subprocess.Popen(["sh", "-c", "sleep 600; :", given["mark"]])
            held.add(id)
        else:
            text(id, "done")
    elif tool == "log":
        least = meta.get("io.modelcontextprotocol/logLevel") if NEW else level
        for one in LEVELS:
            if least is not None and LEVELS.index(one) >= LEVELS.index(least):
                say(method="notifications/message", params={"level": one, "logger": "asks", "data": "at " + one})
        text(id, str(least))
    elif tool == "tick":
        ticks += 1
        for uri in sorted(subscribed) if not NEW else ["asks://ticks"]:
            announce("notifications/resources/updated", lambda l: uri in l.get("resourceSubscriptions", []), uri=uri)
        text(id, str(ticks))
    elif tool == "grow":
        grown += 1
        for kind in ("tools", "prompts", "resources"):
            announce("notifications/%s/list_changed" % kind, lambda l: l.get(kind + "ListChanged"))
        text(id, str(grown))
    elif tool == "changes":
        text(id, str(roots_changed))
    elif tool == "cancelled":
        text(id, str(cancelled))
    elif tool == "wide":
        text(id, "y" * 8_000_000)
    else:
        text(id, given.get("text", ""))


def listed(kind):
    names = {"tools": TOOLS, "prompts": ["p"], "resources": ["ticks"]}[kind] + ["%s%d" % (kind, i + 1) for i in range(grown)]
    if kind == "tools":
        return [{"name": n, "inputSchema": PLAIN, "annotations": {"readOnlyHint": True}} for n in names]
    if kind == "prompts":
        return [{"name": n, "arguments": [{"name": "who", "required": True}]} for n in names]
    return [{"name": n, "uri": "asks://" + n} for n in names]


def answer(id, method, p):
    global level
    if method == "initialize" and not NEW:
        return {"protocolVersion": "2025-11-25", "serverInfo": {"name": "asks", "version": "1"}, "capabilities": {
            "tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}, "logging": {}, "completions": {}}}
    if method == "server/discover" and NEW:
        return {"supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "asks", "version": "1"}},
                "capabilities": {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}, "logging": {}, "completions": {}}}
    if method.endswith("/list") and method != "resources/templates/list":
        kind = method.split("/")[0]
        return {kind: listed(kind)}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"name": "t", "uriTemplate": "asks://of/{x}"}]}
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": "%s for %s" % (p["name"], (p.get("arguments") or {}).get("who"))}}]}
    if method == "resources/read":
        return {"contents": [{"uri": p["uri"], "text": "ticked %d" % ticks}]}
    if method == "completion/complete":
        ref, context = p["ref"], (p.get("context") or {}).get("arguments") or {}
        of = ref.get("name") or ref["uri"]
        return {"completion": {"values": ["%s %s%s" % (of, p["argument"]["value"], "".join(context.values()))], "total": 1, "hasMore": False}}
    if method == "logging/setLevel" and not NEW:
        level = p["level"]
        return {}
    if method in ("resources/subscribe", "resources/unsubscribe") and not NEW:
        (subscribed.add if method == "resources/subscribe" else subscribed.discard)(p["uri"])
        return {}
    return None


for line in sys.stdin:
    m = json.loads(line)
    method, p, id = m.get("method"), m.get("params") or {}, m.get("id")
    if method is None and id in waiting:
        call_id, tool = waiting.pop(id)
        text(call_id, answered(tool, m["result"]) if "result" in m else "error %d" % m["error"]["code"])
    elif method == "notifications/roots/list_changed":
        roots_changed += 1
    elif method == "notifications/cancelled":
        streams.pop(p.get("requestId"), None)
        if p.get("requestId") in held:
            held.discard(p["requestId"])
            cancelled += 1
    elif id is None:
        pass
    elif method == "tools/call":
        call(id, p)
    elif method == "subscriptions/listen" and NEW:
        streams[id] = p["notifications"]
        say(method="notifications/subscriptions/acknowledged", params={"notifications": p["notifications"], "_meta": {SUBSCRIPTION: id}})
    else:
        result = answer(id, method, p)
        if result is None:
            say(id=id, error={"code": -32601, "message": "unknown"})
        else:
            say(id=id, result={**result, **({"resultType": "complete"} if NEW else {})})
