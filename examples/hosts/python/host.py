#!/usr/bin/env python3
"""A host in Python: runs a batch of calls as one turn of a toolhost daemon.

    host.py [--socket PATH] [--yes] [--retries N] 'greet {"name": "World"}' 'count {}' ...

It needs only the standard library. The turn's events come by server-sent
events, on a connection of their own that is made again where it breaks; what is
asked is asked on the terminal; the results are printed in call order.
"""

import argparse
import http.client
import json
import os
import queue
import random
import socket
import sys
import threading
import time
import urllib.parse


class Connection(http.client.HTTPConnection):
    """HTTP over the daemon's unix socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.connect(self.path)
        except OSError as error:
            raise ConnectionError(f"no daemon at {self.path} ({error.strerror}): start one with toolhost serve, or name its socket with --socket") from error


class Refused(Exception):
    """The daemon's own error: a code, a message and what to do about it."""

    def __init__(self, status, body):
        error = json.loads(body)["error"]
        self.status, self.code = status, error["code"]
        super().__init__(f"{error['message']}: {error['remedy']}")


class Daemon:
    def __init__(self, path):
        self.path = path

    def open(self, method, path, body=None, headers=None):
        """Sends a request; the answer is still to be read."""
        connection = Connection(self.path)
        content = None if body is None else json.dumps(body)
        connection.request(method, "/api/" + path, content, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        if answer.status >= 300:
            raise Refused(answer.status, answer.read())
        return answer

    def ask(self, method, path, body=None):
        with self.open(method, path, body) as answer:
            return json.loads(answer.read())

    def events(self, turn):
        """Yields a turn's events, each once, until the turn is over."""
        last = "0"
        while True:
            try:
                with self.open("GET", f"turns/{quoted(turn)}/events", None, {"Last-Event-ID": last}) as stream:
                    for last, event in frames(stream, last):
                        yield event
                        if event.get("kind") == "turn_end":
                            return
            except (OSError, http.client.HTTPException):
                pass  # the connection was lost: go on where it was
            except Refused as refused:
                return say(str(refused))  # the turn is not on record any more, or the rest cannot be read
            time.sleep(0.5)


def frames(stream, last):
    """Reads server-sent events: lines of "name: value", and an empty one at the end of each.
    One without an id leaves the last one as it is."""
    kind = data = ""
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "id":
            last = value
        elif name == "event":
            kind = value
        elif name == "data":
            data += value
        elif not name and data:
            if kind == "error":
                raise Refused(stream.status, data)
            yield last, json.loads(data)
            kind = data = ""


def quoted(text):
    return urllib.parse.quote(text, safe="")


def printable(text):
    """Tools and models choose these texts: none of them is to control the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def watch(daemon, turn, yes):
    asker = Asker(daemon, yes)
    for event in daemon.events(turn):
        if event.get("kind") == "interaction_response":
            asker.settled(event)
        words = [event.get(key, "") for key in ("toolCallId", "toolName", "status", "message", "outcome")]
        words.append((event.get("content") or {}).get("text", ""))
        say(" ".join([f"{event.get('seq', '-')}", event.get("kind", "gap")] + [w for w in words if w]))
        if event.get("kind") == "interaction_request":
            asker.ask(event)


def say(text, end="\n"):
    print(printable(text), end=end, file=sys.stderr, flush=True)


class Asker:
    """Asks on the terminal, one question at a time. A thread of its own reads the
    lines, for a question may be settled elsewhere before somebody types: nothing
    waits for that thread, and a line begun for one question answers no other."""

    def __init__(self, daemon, yes):
        self.daemon, self.yes, self.lock = daemon, yes, threading.Lock()
        self.open, self.wanted = {}, queue.SimpleQueue()  # the first of the open ones is shown
        threading.Thread(target=self.read, daemon=True).start()

    def ask(self, question):
        if "schema" in question or question["interactionKind"] in ("password", "sampling", "roots"):
            self.answer(question, {"unanswered": "failed"})  # a form or the like; this host has none
        elif self.yes:
            self.answer(question, {"approve": True})
        else:
            with self.lock:
                self.open[question["interactionId"]] = question
                if len(self.open) == 1:
                    self.show()

    def show(self):
        for question in list(self.open.values())[:1]:
            say(f"{question['toolName']}: {question['prompt']}")
            say("allow? [y/N] ", end="")
            self.wanted.put(question)

    def settled(self, response):
        self.close(response["interactionId"], f"\n{response['toolName']}: settled elsewhere, {response['outcome']}")

    def close(self, interaction, why=""):
        """Says whether the question was open; if it was shown, the next one is."""
        with self.lock:
            shown = interaction in list(self.open)[:1]
            was_open = self.open.pop(interaction, None) is not None
            if shown:
                for line in why.splitlines():
                    say(line)
                self.show()
            return was_open

    def read(self):
        stdin = open(0, "rb", buffering=0, closefd=False)  # Python cannot exit while a thread reads the buffered one
        while True:
            question = self.wanted.get()
            line = stdin.readline()
            if not self.close(question["interactionId"]):
                say("(that came too late for the last question)")
                continue
            yes = line.strip().lower() in (b"y", b"yes")
            self.answer(question, {"approve": yes} if line else {"unanswered": "failed"})  # the end: nobody is there

    def answer(self, question, body):
        try:
            self.daemon.ask("POST", f"interactions/{quoted(question['interactionId'])}/answer", body)
        except Refused as refused:
            say(str(refused))  # somebody else was faster, or nobody in time


def run_again(make, calls, retries):
    """Makes a batch of calls, and those again that have failed and whose results
    say that they may be: the tool never started, or is known to be harmless. All
    of them share the retries that there are, 10 at most. That the last attempt has
    changed nothing is not told where one before it may have."""
    results, places, wait, left = make(calls), range(len(calls)), 0.2, 10
    last = list(results)
    for _ in range(retries):
        places = [at for at in places if last[at]["status"] != "ok" and last[at]["retry"]["retryable"]][:left]
        if not places:
            break
        left -= len(places)
        after = max(last[at]["retry"].get("afterMs", 0) / 1000 for at in places)
        if after > 10:
            break
        time.sleep(max(wait * random.uniform(0.5, 1), after))
        wait = min(2 * wait, 10)
        for at, result in zip(places, make([{**calls[at], "retry": True} for at in places])):
            last[at] = result
            if result["status"] == "ok" or result["retry"]["sideEffects"] != "none" or results[at]["retry"]["sideEffects"] == "none":
                results[at] = result
    return results


def run(daemon, calls, yes, retries):
    turn = daemon.ask("POST", "turns", {"agentId": "python"})["turnId"]
    watching = threading.Thread(target=watch, args=(daemon, turn, yes), daemon=True)
    watching.start()
    try:
        return run_again(lambda some: daemon.ask("POST", f"turns/{quoted(turn)}/calls", {"calls": some})["results"], calls, retries)
    finally:
        daemon.ask("POST", f"turns/{quoted(turn)}/end")  # also after Ctrl-C: nothing runs on
        watching.join()


def main():
    parser = argparse.ArgumentParser(description="Run calls as one turn of a toolhost daemon.")
    parser.add_argument("--socket", default=os.environ.get("TOOLHOST_SOCKET", "/run/toolhost/toolhost.sock"))
    parser.add_argument("--yes", action="store_true", help="approve whatever is asked")
    parser.add_argument("--retries", type=int, default=2, help="make a call again up to so many times where its result is retryable (default 2)")
    parser.add_argument("calls", nargs="+", metavar="CALL", help="a tool's name and its arguments as JSON")
    options = parser.parse_args()
    calls = []
    for number, text in enumerate(options.calls, 1):
        tool, _, arguments = text.partition(" ")
        try:
            calls.append({"id": str(number), "tool": tool, "arguments": json.loads(arguments or "{}")})
        except ValueError as error:
            parser.error(printable(f"the arguments of {tool} are not JSON: {error}"))
    try:
        results = run(Daemon(options.socket), calls, options.yes, options.retries)
    except (OSError, http.client.HTTPException, ValueError, Refused) as error:
        sys.exit(f"host.py: {printable(str(error))}")
    except KeyboardInterrupt:
        sys.exit(130)
    for result in results:
        print(json.dumps({key: result[key] for key in ("callId", "tool", "status", "content", "message")}))
    sys.exit(0 if all(result["status"] == "ok" for result in results) else 1)


if __name__ == "__main__":
    main()
