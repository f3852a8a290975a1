#!/usr/bin/env python3
"""A server that cannot load its model as mlx_lm could not: one traceback (a ValueError chained from
a ModuleNotFoundError) from the thread that loads, while the thread that serves HTTP goes on
answering /health. It completes nothing, and ends only when it is ended. It logs each request, as real
servers do.

    mlx_like.py --port N [--model-type TYPE] [--after SECONDS] [--survives] [--hangs] [--refuses]

--survives: the traceback is one that the server lives with (BrokenPipeError), and it then completes.
--hangs: the loading thread stands still without a word. --refuses: as long as nothing is loaded a
completion is answered with 503; otherwise it is held.
"""

import argparse
import http.server
import importlib
import json
import sys
import threading
import time
import traceback


def model_class(model_type: str):
    try:
        return importlib.import_module(f"mlx_lm_models_of_nobody.{model_type}")
    except ImportError:
        raise ValueError(f"Model type {model_type} not supported.")


class Server:

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.loaded = threading.Event()

    def load(self) -> None:
        time.sleep(self.arguments.after)
        if self.arguments.hangs:
            return
        try:
            if self.arguments.survives:
                raise BrokenPipeError(32, "Broken pipe")
            model_class(self.arguments.model_type)
        except Exception:  # as the thread of a server does it, and then there is silence
            traceback.print_exc()
            sys.stderr.flush()
            if not self.arguments.survives:
                return
        self.loaded.set()


def handler(server: Server):

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, body: dict, status: int = 200) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.answer({"status": "ok"})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if server.arguments.refuses and not server.loaded.is_set():
                self.answer({"error": {"message": "loading"}}, 503)
                return
            server.loaded.wait()
            self.answer({"object": "text_completion", "model": "mlx",
                         "choices": [{"index": 0, "text": "yes", "finish_reason": "stop",
                                      "message": {"role": "assistant", "content": "yes"}}]})

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model-type", default="x")
    parser.add_argument("--after", type=float, default=0.0)
    for option in ("--survives", "--hangs", "--refuses"):
        parser.add_argument(option, action="store_true")
    server = Server(parser.parse_args())
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", server.arguments.port), handler(server))
    listener.daemon_threads = True
    print(f"listening on {listener.server_address[1]}", flush=True)
    threading.Thread(target=server.load, daemon=True).start()
    listener.serve_forever()


if __name__ == "__main__":
    main()
