"""A program with an OpenAI-compatible endpoint, for models with kind = "command".

openai_program.py --port PORT | --uds PATH [--key KEY] [--host ADDRESS] [--never] [--family] [--raise]
--never: answers /health and lists its model, but completes nothing. --family: leaves a child in a
session of its own that ignores SIGTERM, and says its pid. --raise: fails as a runtime does that
does not know the model.
"""

import argparse
import http.server
import json
import signal
import socketserver
import subprocess
import sys


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
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return
        if OPTIONS.never or body["model"] != "their-name":
            self.answer(503, {"error": {"message": "not now"}})
        elif self.path == "/v1/completions":
            self.answer(200, {"choices": [{"text": "a"}]})
        else:
            self.answer(404, {})

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
