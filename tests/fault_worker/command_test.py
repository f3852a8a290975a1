"""The command mode of the fault worker and the server that cannot load its model, from outside."""

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DEADLINE = 60.0
HERE = Path(__file__).resolve().parent
FAULT_WORKER = os.environ["BERTH_FAULT_WORKER"]


class Command(unittest.TestCase):

    def start(self, *command: str) -> int:
        """Starts a server and returns its port."""
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log)
        self.addCleanup(self.stop)
        self.assertTrue(select.select([self.process.stdout], [], [], DEADLINE)[0])
        line = self.process.stdout.readline().decode()
        self.assertTrue(line.startswith("listening on "), line)
        return int(line.split()[2])

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()

    def logged(self) -> str:
        self.log.seek(0)
        return self.log.read().decode()

    def request(self, port: int, method: str, path: str, body: str | None = None,
                headers: dict | None = None) -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer

    def never_completes(self, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), DEADLINE) as stream:
            stream.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            for _ in range(5):
                self.assertEqual(self.request(port, "GET", "/health")[0], 200)
            self.assertEqual(select.select([stream], [], [], 0)[0], [])

    def test_L28_answers_health_and_never_completes(self) -> None:
        port = self.start(FAULT_WORKER, "command", "--port", "0", "--order", "load: stall")
        self.never_completes(port)

    def test_L28_serves_without_orders(self) -> None:
        port = self.start(FAULT_WORKER, "command", "--port", "0", "--api-key", "k")
        self.assertEqual(self.request(port, "POST", "/v1/completions", "{}")[0], 401)
        status, answer = self.request(port, "POST", "/v1/chat/completions", "{}",
                                      {"Authorization": "Bearer k"})
        self.assertEqual(status, 200)
        self.assertIn("fault worker", answer["choices"][0]["message"]["content"])
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(DEADLINE), 0)

    def test_L28_dies_in_a_request(self) -> None:
        port = self.start(FAULT_WORKER, "command", "--port", "0", "--order",
                          "request: print about to die\\n", "--order", "signal SEGV")
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            self.request(port, "POST", "/v1/completions", "{}")
        self.assertEqual(self.process.wait(DEADLINE), -signal.SIGSEGV)
        self.assertEqual(self.logged(), "about to die\n")

    def test_L28_listens_on_a_unix_socket(self) -> None:
        with tempfile.TemporaryDirectory(prefix="bf-", dir="/tmp") as directory:
            path = directory + "/s"
            ready = directory + "/ready"
            self.log = tempfile.TemporaryFile()
            self.process = subprocess.Popen(
                [FAULT_WORKER, "command", "--socket", path, "--order", "ready: print up\\n",
                 "--parent-stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT)
            self.addCleanup(self.stop)
            self.assertEqual(self.process.stdout.readline(), b"up\n")
            with socket.socket(socket.AF_UNIX) as stream:
                stream.settimeout(DEADLINE)
                stream.connect(path)
                stream.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                self.assertTrue(stream.recv(100).startswith(b"HTTP/1.1 200"))
            self.process.stdin.close()
            self.assertEqual(self.process.wait(DEADLINE), 0)
            self.assertFalse(os.path.exists(ready) or os.path.exists(path))

    def test_L28_the_incident(self) -> None:
        """One chained traceback, then silence, while /health answers."""
        port = self.start(sys.executable, str(HERE / "mlx_like.py"), "--port", "0")
        self.never_completes(port)
        text = self.logged()
        self.assertIn("ModuleNotFoundError: No module named 'mlx_lm_models_of_nobody'", text)
        self.assertIn("During handling of the above exception, another exception occurred:", text)
        # After the last line of the traceback there is nothing but the access log.
        verdict = "ValueError: Model type x not supported.\n"
        self.assertIn(verdict, text)
        for line in text.split(verdict)[1].splitlines():
            self.assertIn('"GET /health HTTP/1.1" 200', line)

    def test_L28_refuses_and_logs_each_request(self) -> None:
        port = self.start(sys.executable, str(HERE / "mlx_like.py"), "--port", "0", "--hangs",
                          "--refuses")
        self.assertEqual(self.request(port, "POST", "/v1/completions", "{}")[0], 503)
        self.assertEqual(self.request(port, "GET", "/v1/models")[0], 200)
        lines = self.logged().splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertIn('"POST /v1/completions HTTP/1.1" 503', lines[0])

    def test_L28_a_traceback_that_is_survived(self) -> None:
        port = self.start(sys.executable, str(HERE / "mlx_like.py"), "--port", "0", "--survives")
        self.assertEqual(self.request(port, "POST", "/v1/completions", "{}")[0], 200)
        self.assertIn("BrokenPipeError", self.logged())


if __name__ == "__main__":
    unittest.main()
