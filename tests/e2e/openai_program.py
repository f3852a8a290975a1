"""A program with an OpenAI-compatible endpoint, for models with kind = "command".

openai_program.py --port PORT | --uds PATH [--key KEY] [--host ADDRESS] [--never] [--family] [--raise]
--never: answers /health and lists its model, but completes nothing. --family: leaves a child in a
session of its own that ignores SIGTERM, and says its pid. --raise: fails as a runtime does that
does not know the model.

A request does what the last text in it says:
say WORDS      answers with these words, one a token     status N TEXT  refuses with that status
endless        goes on until its client is gone          tools          calls a tool
break          ends the connection within its answer     no end         ends its stream without [DONE]
die            exits within its answer                   huge           sends a line of 5 MiB
slow WORDS     waits for the file "go" in its directory before it answers
Anything else is answered with "a". Each request is printed as a line of JSON behind "got ", and
"client gone" when a client has gone.
"""

import argparse
import http.server
import json
import os
import pathlib
import signal
import socketserver
import subprocess
import sys
import time


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--uds")
    parser.add_argument("--key", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--never", action="store_true")
    parser.add_argument("--family", action="store_true")
    parser.add_argument("--raise", action="store_true", dest="fails")
    return parser.parse_args()


OPTIONS = parse()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: dict) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def allowed(self) -> bool:
        if not OPTIONS.key or self.headers.get("Authorization") == f"Bearer {OPTIONS.key}":
            return True
        self.answer(401, {"error": {"message": "wrong key"}})
        return False

    def do_GET(self) -> None:
        if not self.allowed():
            return
        if self.path == "/health":
            self.answer(200, {"status": "ok"})
        elif self.path == "/v1/models":
            self.answer(200, {"data": [{"id": "their-name", "max_model_len": 2048}]})
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = json.loads(text)
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        known = {OPTIONS.key: "its own", "": "none"}.get(key, "a stranger's")
        print("got " + json.dumps({"path": self.path, "key": known, "body": text}), flush=True)
        if not self.allowed():
            return
        if OPTIONS.never or body["model"] != "their-name":
            self.answer(503, {"error": {"message": "not now"}})
        elif self.path == "/v1/embeddings":
            self.embed(body)
        elif self.path in ("/v1/completions", "/v1/chat/completions"):
            self.complete(body)
        else:
            self.answer(404, {"error": {"message": "no such endpoint"}})

    def embed(self, body: dict) -> None:
        inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
        self.answer(200, {"model": "their-name", "usage": {"prompt_tokens": len(inputs)},
                          "data": [{"index": i, "embedding": [3.0, 4.0]}
                                   for i in range(len(inputs))]})

    def complete(self, body: dict) -> None:
        chat = self.path == "/v1/chat/completions"
        what = body["messages"][-1]["content"] if chat else body["prompt"]
        what = what if isinstance(what, str) else ""
        verb, _, rest = what.partition(" ")
        if verb == "status":
            status, _, message = rest.partition(" ")
            return self.answer(int(status), {"error": {"message": message}})
        if verb == "slow":
            while not pathlib.Path("go").exists():
                time.sleep(0.01)  # polls
            verb = "say"
        if not body.get("stream"):
            words = rest if verb == "say" else "a"
            choice = {"message": {"content": words}} if chat else {"text": words}
            choice.update(index=0, finish_reason="stop")
            return self.answer(200, {"model": "their-name", "choices": [choice],
                                     "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            if self.stream(chat, verb if what != "no end" else what, rest):
                self.event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            print("client gone", flush=True)
            self.close_connection = True

    def event(self, text: str) -> None:
        line = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def choice(self, chat: bool, text: str, **more: object) -> None:
        choice = {"index": 0, **({"delta": {"content": text}} if chat else {"text": text}), **more}
        self.event(json.dumps({"model": "their-name", "choices": [choice]}))

    def stream(self, chat: bool, verb: str, rest: str) -> bool:
        """Whether the stream has a good end."""
        if verb == "huge":
            self.choice(chat, "x" * (5 << 20))
        elif verb == "tools":
            call = {"index": 0, "id": "call-1",
                    "function": {"name": "weather", "arguments": "{\"city\":\"Bonn\"}"}}
            self.event(json.dumps({"model": "their-name", "choices": [
                {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}))
            return True
        elif verb == "endless":
            while True:
                self.choice(chat, "x")
                time.sleep(0.01)  # polls
        elif verb in ("break", "die", "no end"):
            self.choice(chat, "half")
            if verb == "die":
                os._exit(3)
            if verb == "break":
                self.connection.close()
                raise ConnectionResetError
            return False
        else:
            for word in (rest if verb == "say" else "a").split(" "):
                self.choice(chat, word)
        self.choice(chat, "", finish_reason="stop")
        self.event(json.dumps({"model": "their-name", "choices": [],
                               "usage": {"prompt_tokens": 3, "completion_tokens": 2}}))
        return True

    def address_string(self) -> str:  # a Unix socket's peer has none
        return "peer"


class UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def load() -> None:
    try:
        import a_runtime_that_is_not_there  # noqa: F401
    except ModuleNotFoundError as error:
        raise ValueError("Model type glm_ocr_next not supported.") from error


def main() -> None:
    if OPTIONS.family:
        family = subprocess.Popen(["sh", "-c", "trap '' TERM HUP; sleep 600 & wait"],
                                  start_new_session=True)
        print("family", family.pid, flush=True)
    if OPTIONS.fails:
        load()
    if OPTIONS.uds:
        server = UnixServer(OPTIONS.uds, Handler)
    else:
        server = http.server.ThreadingHTTPServer((OPTIONS.host, OPTIONS.port), Handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.serve_forever()


main()
