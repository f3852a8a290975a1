"""The HTTP front as a socket sees it: what is no proper request, clients that are slow or go away,
foreign pages, TLS, and the end."""

import json
import signal
import socket
import ssl
import subprocess

from programs import DEADLINE, Berthd
from scenario import Scenario

GOOD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Client:
    """A connection that sends bytes as they are."""

    def __init__(self, daemon: Berthd) -> None:
        host, port = daemon.http.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), DEADLINE)
        self.received = b""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all of it was sent: the answer says why

    def more(self) -> bool:
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self.received += data
        return bool(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer with a Content-Length: status, headers in lower case, body."""
        while b"\r\n\r\n" not in self.received:
            if not self.more():
                raise AssertionError(f"no answer, only {self.received!r}")
        head, self.received = self.received.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in
                   (line.split(": ", 1) for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        while len(self.received) < length and self.more():
            pass
        body, self.received = self.received[:length], self.received[length:]
        return int(lines[0].split()[1]), headers, body

    def closed(self) -> bool:
        """Reads to the end; whether nothing more came."""
        while self.more():
            pass
        return not self.received


class HttpTransport(Scenario):

    def exchange(self, daemon: Berthd, request: bytes) -> tuple[int, dict[str, str], bytes]:
        with Client(daemon) as client:
            client.send(request)
            return client.answer()

    def lives(self, daemon: Berthd) -> None:
        self.assertEqual(self.exchange(daemon, GOOD)[0], 200)

    def refused(self, daemon: Berthd, request: bytes, status: int, code: str) -> dict:
        found, headers, body = self.exchange(daemon, request)
        self.assertEqual(found, status, request)
        error = json.loads(body)["error"]
        self.assertEqual(error["code"], code, request)
        self.assertEqual(error["request_id"], headers["x-request-id"])
        self.assertTrue(error["message"])
        return headers

    def test_smuggling_shapes_are_refused(self) -> None:
        daemon = self.serve(models=())
        start = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
        for request in (
                start + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
                start + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                start + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
                start + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
                start + b"X: a\r\n b\r\n\r\n",
                start + b"X: a\nY: b\r\n\r\n",
                start + b"X: a\0\r\n\r\n",
                start + b"Host: localhost\r\n\r\n",
                b"GET /livez HTTP/1.1\r\n\r\n",
                b"GET http://elsewhere/livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"GET /livez\r\n\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                bytes.fromhex("16030100c4010000c00303"),
        ):
            headers = self.refused(daemon, request, 400, "invalid_argument")
            self.assertEqual(headers["connection"], "close", request)
        self.lives(daemon)

    def test_bounds_of_the_header(self) -> None:
        daemon = self.serve(models=())
        start = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
        self.refused(daemon, start + b"X: " + b"x" * 20000 + b"\r\n\r\n", 431, "headers_too_large")
        self.refused(daemon, start + b"X: y\r\n" * 200 + b"\r\n", 431, "headers_too_large")
        self.lives(daemon)

    def test_T95_foreign_pages(self) -> None:
        daemon = self.serve('[server]\nallowed_hosts = ["berth.lan"]\n'
                            'cors_origins = ["https://page.example"]\n', models=())
        route = b"GET /livez HTTP/1.1\r\nHost: "
        self.refused(daemon, route + b"evil.example\r\n\r\n", 403, "permission_denied")
        self.assertEqual(self.exchange(daemon, route + b"berth.lan\r\n\r\n")[0], 200)
        for origin in (b"https://evil.example", b"null"):
            headers = self.refused(daemon, route + b"localhost\r\nOrigin: " + origin + b"\r\n\r\n", 403,
                                   "permission_denied")
            self.assertNotIn("access-control-allow-origin", headers)
        status, headers, _ = self.exchange(
            daemon, route + b"localhost\r\nOrigin: https://page.example\r\n\r\n")
        self.assertEqual(status, 200)
        self.assertEqual(headers["access-control-allow-origin"], "https://page.example")

    def test_T94_livez_and_readyz_take_get_alone(self) -> None:
        daemon = self.serve(models=())
        headers = self.refused(daemon, b"POST /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 405,
                               "method_not_allowed")
        self.assertEqual(headers["allow"], "GET, HEAD")
        self.refused(daemon, b"GET /no HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "not_found")

    def test_requests_on_one_connection_are_answered_in_order(self) -> None:
        daemon = self.serve(models=())
        with Client(daemon) as client:
            client.send(b"".join(
                b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: %d\r\n\r\n" % number
                for number in range(300)))
            for number in range(300):
                status, headers, body = client.answer()
                self.assertEqual((status, headers["x-request-id"], body), (200, str(number), b"ok\n"))
            client.socket.shutdown(socket.SHUT_WR)
            self.assertTrue(client.closed())

    def test_clients_that_say_little_harm_nobody(self) -> None:
        daemon = self.serve(models=())
        silent = [Client(daemon) for _ in range(200)]
        for number, client in enumerate(silent):
            client.send(GOOD[:number % len(GOOD)])
        self.lives(daemon)
        # Byte by byte is a proper request still.
        with Client(daemon) as slow:
            for byte in GOOD:
                slow.send(bytes([byte]))
            self.assertEqual(slow.answer()[0], 200)
        for client in silent:
            client.socket.close()
        self.lives(daemon)

    def test_L29_open_connections_do_not_hold_the_end(self) -> None:
        daemon = self.serve(models=())
        with Client(daemon) as idle, Client(daemon) as half:
            idle.send(GOOD)
            self.assertEqual(idle.answer()[0], 200)
            half.send(GOOD[:20])
            daemon.process.send_signal(signal.SIGTERM)
            self.assertTrue(idle.closed())
            self.assertEqual(daemon.process.wait(DEADLINE), 0)
            half.closed()

    def test_bodies_that_are_not_taken(self) -> None:
        daemon = self.serve('[server]\nmax_body = "1MiB"\n[auth]\nkeys_file = "keys"\n', models=())
        route = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        typed = route + b"Content-Type: application/json\r\n"
        # Before any of it is read, and no foreign form can write (T95).
        self.refused(daemon, route + b"Content-Length: 2\r\n\r\n", 415, "unsupported_media_type")
        self.refused(daemon, typed + b"Authorization: Bearer wrong\r\nContent-Length: 2\r\n\r\n", 401,
                     "unauthenticated")
        headers = self.refused(daemon, typed + b"Content-Length: 1048577\r\n\r\n", 413, "body_too_large")
        self.assertEqual(headers["connection"], "close")
        chunks = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        self.refused(daemon, typed + b"Transfer-Encoding: chunked\r\n\r\n" + chunks * 17 + b"0\r\n\r\n",
                     413, "body_too_large")
        self.refused(daemon, typed + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400,
                     "invalid_argument")
        with Client(daemon) as cut:
            cut.send(typed + b"Content-Length: 100\r\n\r\n{}")
            cut.socket.shutdown(socket.SHUT_WR)
            status, _, body = cut.answer()
            self.assertEqual(status, 400)
            self.assertIn(b"after 2 bytes", body)
        self.lives(daemon)

    def test_a_body_that_comes_too_slowly(self) -> None:
        daemon = self.serve(models=())
        with Client(daemon) as slow:
            slow.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                      b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            status, headers, _ = slow.answer()
            self.assertEqual((status, headers["connection"]), (408, "close"))
        self.lives(daemon)

    def test_a_large_body_between_small_ones(self) -> None:
        daemon = self.serve(models=())
        with Client(daemon) as client:
            for size in (10, 300_000, 10, 5_000_000, 10):
                body = json.dumps({"model": "none", "prompt": "x" * size}).encode()
                client.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                            b"application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                status, _, answer = client.answer()
                self.assertEqual((status, json.loads(answer)["error"]["code"]), (404, "unknown_model"))

    def test_the_largest_body_in_chunks(self) -> None:
        daemon = self.serve(models=())
        largest = 64 << 20
        head = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n")
        start, end = b'{"model": "none", "prompt": "', b'"}'
        with Client(daemon) as client:
            client.send(head + b"%x\r\n" % len(start) + start + b"\r\n")
            rest = largest - len(start) - len(end)
            while rest > 0:
                size = min(rest, 1 << 20)
                client.send(b"%x\r\n" % size + b"x" * size + b"\r\n")
                rest -= size
            client.send(b"2\r\n" + end + b"\r\n0\r\n\r\n")
            status, _, answer = client.answer()
            self.assertEqual((status, json.loads(answer)["error"]["code"]), (404, "unknown_model"))
        chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
        self.refused(daemon, head + chunk * 64 + b"1\r\n", 413, "body_too_large")
        self.lives(daemon)

    def test_half_closed_clients_get_what_is_no_work(self) -> None:
        daemon = self.serve(models=("demo",))
        for path in (b"/v1/models", b"/v1/models/demo", b"/api/state", b"/metrics", b"/livez"):
            with Client(daemon) as client:
                client.send(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                client.socket.shutdown(socket.SHUT_WR)
                status, _, body = client.answer()
                self.assertEqual(status, 200, path)
                self.assertTrue(body, path)
                self.assertTrue(client.closed())

    def test_tls(self) -> None:
        certificate = self.workspace.path / "cert.pem"
        key = self.workspace.path / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", str(key), "-out", str(certificate)],
                       check=True, capture_output=True, timeout=DEADLINE)
        daemon = self.serve(f'[server]\ntls_cert = "{certificate}"\ntls_key = "{key}"\n', models=())
        done = subprocess.run(["curl", "-sS", "--http1.1", "--cacert", str(certificate),
                               f"https://{daemon.http}/livez"],
                              capture_output=True, timeout=DEADLINE, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, b"ok\n"), done.stderr)
        # Without TLS, with an old one, and with another protocol, nothing is said.
        with Client(daemon) as plain:
            plain.send(GOOD)
            self.assertNotIn(b"HTTP/1.1", plain.received if plain.closed() else plain.received)
        for spoil in (lambda context: setattr(context, "maximum_version", ssl.TLSVersion.TLSv1_1),
                      lambda context: context.set_alpn_protocols(["h2"])):
            context = ssl.create_default_context(cafile=str(certificate))
            spoil(context)
            with Client(daemon) as odd, self.assertRaises(OSError):
                context.wrap_socket(odd.socket, server_hostname="localhost")
        context = ssl.create_default_context(cafile=str(certificate))
        with Client(daemon) as client:
            client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
            for _ in range(3):
                client.send(GOOD)
                self.assertEqual(client.answer()[0], 200)

    def test_a_wrong_tls_file_is_named(self) -> None:
        wrong = self.workspace.path / "wrong.pem"
        wrong.write_text("no certificate\n")
        self.workspace.config(f'[server]\ntls_cert = "{wrong}"\ntls_key = "{wrong}"\n')
        self.refused_start("tls_cert", str(wrong))
