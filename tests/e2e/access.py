"""Who gets in, as what, and how much of it: keys, roles, entitlement, limits, from outside."""

import json
import os
import shutil
import stat
import subprocess
import unittest

import programs
from key_scenario import KEYS, KeyScenario

BOTH_DOORS = '[server]\ngrpc = ["unix:run/berth.sock", "127.0.0.1:0"]\n'
COMPLETE = ("complete", "demo", "once upon", "--max-tokens", "1")


def curl_speaks_http2() -> bool:
    if not shutil.which("curl"):
        return False
    return "HTTP2" in subprocess.run(["curl", "--version"], capture_output=True, text=True,
                                     timeout=programs.DEADLINE, check=False).stdout


class Access(KeyScenario):

    # --- the file

    def test_keys_are_made_listed_and_revoked_without_a_daemon(self) -> None:
        key = self.add_key("alice", "--group", "team")
        self.assertRegex(key, r"^berth-[A-Za-z0-9_-]{43}$")
        mode = stat.S_IMODE(os.stat(self.key_file()).st_mode)
        self.assertEqual(mode & 0o137, 0, oct(mode))
        with open(self.key_file(), encoding="utf-8") as file:
            self.assertNotIn(key, file.read())
        listed = json.loads(self.keys("list", "--json"))["keys"]
        self.assertEqual(listed, [{"name": "alice", "role": "client", "tenant_group": "team"}])
        self.keys("revoke", "alice")
        self.assertIn("no key named 'alice'", self.keys("revoke", "alice", code=1))

    def test_a_file_that_cannot_be_made_gives_no_key(self) -> None:
        done = programs.run_berth(self.build, "keys", "add", "alice", "--keys-file", "/nowhere/keys")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, b"")
        self.assertIn("/nowhere/keys", done.stderr.decode())

    def test_the_network_is_refused_without_keys(self) -> None:
        self.workspace.config('[server]\nhttp = "0.0.0.0:0"\n')
        self.refused_start("server.http", "auth.keys_file", "auth.anonymous")

    # --- over gRPC

    def tcp(self, daemon: programs.Berthd) -> str:
        """Where gRPC listens for the network."""
        addresses = daemon.events("server.listening")[0]["grpc"].split(",")
        return next(one for one in addresses if not one.startswith("unix:"))

    def come(self, daemon: programs.Berthd, key: str, *arguments: str) -> subprocess.CompletedProcess:
        """`berth` over TCP, with that key."""
        file = self.workspace.path / "key.txt"
        file.write_text(key + "\n")
        shown = ("--api-key-file", str(file)) if key else ()
        return programs.run_berth(self.build, *arguments, *shown, endpoint=self.tcp(daemon))

    def test_a_key_is_taken_and_refused_the_moment_the_file_says_so(self) -> None:
        first = self.add_key("first")
        daemon = self.serve(BOTH_DOORS + KEYS)
        self.assertEqual(daemon.wait_event("keys.reloaded")["keys"], 1)
        self.assertEqual(self.come(daemon, first, "models").returncode, 0)
        self.assertEqual(self.come(daemon, "", "models").returncode, 0, "loopback needs none")
        wrong = self.come(daemon, "berth-wrong", "models")
        self.assertEqual(wrong.returncode, 1, wrong.stderr)
        self.assertIn(b"not known", wrong.stderr)

        second = self.add_key("second")
        daemon.wait_event("keys.reloaded", keys=2)
        self.assertEqual(self.come(daemon, second, "models").returncode, 0)
        start = len(daemon.output.lines())
        self.keys("revoke", "first")
        daemon.wait_event("keys.reloaded", start=start, keys=1)
        revoked = self.come(daemon, first, "models")
        self.assertEqual(revoked.returncode, 1)
        said = [answer.stderr.splitlines()[0] for answer in (revoked, wrong)]
        self.assertEqual(said[0], said[1], "unknown and revoked are one")
        self.assertEqual(self.come(daemon, second, "models").returncode, 0)

    @unittest.skipUnless(curl_speaks_http2(), "asks what `berth` never does")
    def test_S6_a_watch_of_health_ends_with_its_key(self) -> None:
        key = self.add_key("alice")
        daemon = self.serve(BOTH_DOORS + KEYS)
        question = self.workspace.path / "question"
        question.write_bytes(b"\0\0\0\0\x06\x0a\x04demo")
        headers = self.workspace.path / "headers"
        watch = subprocess.Popen(
            ["curl", "-sN", "--http2-prior-knowledge", "--noproxy", "*", "-D", str(headers),
             "-H", "content-type: application/grpc", "-H", "te: trailers",
             "-H", f"authorization: Bearer {key}", "--data-binary", f"@{question}",
             f"http://{self.tcp(daemon)}/grpc.health.v1.Health/Watch"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(watch.wait, programs.DEADLINE)
        self.addCleanup(watch.kill)
        self.assertEqual(watch.stdout.read(7), b"\0\0\0\0\x02\x08\x02", "NOT_SERVING")
        self.keys("revoke", "alice")
        rest, _ = watch.communicate(timeout=programs.DEADLINE)
        self.assertEqual(rest, b"")
        self.assertIn("grpc-status: 16", headers.read_text())

    def test_a_broken_file_keeps_the_keys(self) -> None:
        key = self.add_key("alice")
        daemon = self.serve(BOTH_DOORS + KEYS)
        with open(self.key_file(), "a", encoding="utf-8") as file:
            file.write("bob:client\n")
        problem = daemon.wait_event("keys.rejected")["problem"]
        self.assertIn(f"{self.key_file()}:2: expected name:role:tenant_group:hash", problem)
        self.assertEqual(self.come(daemon, key, "models").returncode, 0)
        self.assertIn(f"{self.key_file()}:2", daemon.berth("doctor").stdout.decode())

    def test_roles_decide_who_may_change_something(self) -> None:
        client, admin = self.add_key("client"), self.add_key("ops", "--role", "admin")
        daemon = self.serve(BOTH_DOORS + KEYS)
        for key in ("", client):
            refused = self.come(daemon, key, "load", "demo")
            self.assertEqual(refused.returncode, 1, refused.stdout)
            self.assertIn(b"admin", refused.stderr)
        loaded = self.come(daemon, admin, "load", "demo")
        self.assertEqual(loaded.returncode, 0, loaded.stderr)

    def test_a_rate_is_of_one_key_and_a_reload_changes_it(self) -> None:
        alice, bob = self.add_key("alice"), self.add_key("bob")
        config = BOTH_DOORS + KEYS + "key_requests_per_minute = 1\n"
        daemon = self.serve(config)
        self.assertEqual(self.come(daemon, alice, *COMPLETE).returncode, 0)
        refused = self.come(daemon, alice, *COMPLETE)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(b"alice has made the 1 requests", refused.stderr)
        self.assertEqual(self.come(daemon, bob, *COMPLETE).returncode, 0)
        self.assertEqual(self.come(daemon, "", *COMPLETE).returncode, 0)
        self.assertEqual(self.come(daemon, alice, "models").returncode, 1, "whatever it is")

        self.workspace.config(config.replace("= 1\n", "= 0\n"))
        start = len(daemon.output.lines())
        daemon.process.send_signal(programs.signal.SIGHUP)
        daemon.wait_event("catalog.scanned", start=start)
        self.assertEqual(self.come(daemon, alice, *COMPLETE).returncode, 0)

    @unittest.skipUnless(shutil.which("openssl"), "makes the certificate")
    def test_tls_keeps_the_key_from_the_wire(self) -> None:
        key = self.add_key("alice")
        cert, secret = str(self.workspace.path / "cert.pem"), str(self.workspace.path / "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", secret, "-out",
                        cert], check=True, capture_output=True, timeout=programs.DEADLINE)
        daemon = self.serve(BOTH_DOORS + f'tls_cert = "{cert}"\ntls_key = "{secret}"\n' + KEYS)
        safe = self.come(daemon, key, "models", "--tls-ca", cert)
        self.assertEqual(safe.returncode, 0, safe.stderr)
        self.assertEqual(self.come(daemon, key, "models").returncode, 3, "without TLS nobody answers")
