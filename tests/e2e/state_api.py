"""State, events, loads and metrics over HTTP and gRPC, as tools see them."""

import http.client
import json
import urllib.error
import urllib.request

import programs
from programs import DEADLINE, Berthd
from scenario import Scenario

FAILING = """
[model."broken"]
kind = "command"
command = ["false", "{port}"]
"""

SLOW = """
[model."slow"]
kind = "command"
command = ["sh", "-c", "exec sleep 600", "{port}"]
"""


class StateApi(Scenario):

    def served(self, config: str = "", models: tuple[str, ...] = ("demo",)) -> Berthd:
        """A daemon that takes the key of an admin and that of a client."""
        keys = self.workspace.path / "keys"
        self.keys = {}
        for role in ("admin", "client"):
            done = programs.run_berth(self.build, "keys", "add", f"the-{role}", "--role", role,
                                      "--keys-file", str(keys), "--json")
            if done.returncode == 2:
                self.skipTest("this berth makes no keys")
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            self.keys[role] = json.loads(done.stdout)["key"]
        return self.serve(f'[auth]\nkeys_file = "{keys}"\n{config}', models)

    def open(self, daemon: Berthd, method: str, path: str, role: str | None = None,
             body: dict | None = None, headers: dict[str, str] | None = None):
        request = urllib.request.Request(
            f"http://{daemon.http}{path}", method=method,
            data=None if body is None else json.dumps(body).encode())
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if role is not None:
            request.add_header("Authorization", f"Bearer {self.keys[role]}")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        return urllib.request.urlopen(request, timeout=DEADLINE)

    def ask(self, daemon: Berthd, method: str, path: str, role: str | None = None,
            body: dict | None = None) -> tuple[int, dict]:
        try:
            with self.open(daemon, method, path, role, body) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def state(self, daemon: Berthd, role: str | None = None) -> dict:
        status, state = self.ask(daemon, "GET", "/api/state", role)
        self.assertEqual(status, 200, state)
        return state

    def model(self, state: dict, name: str = "demo") -> dict:
        return next(one for one in state["models"] if one["name"] == name)

    def test_a_model_is_loaded_watched_and_unloaded(self) -> None:
        daemon = self.served()
        self.assertEqual(self.model(self.state(daemon))["state"], "absent")
        status, loaded = self.ask(daemon, "POST", "/api/models/demo/load", "admin", {})
        self.assertEqual(status, 200, loaded)
        self.assertEqual(loaded["ready"]["state"], "ready")
        demo = self.model(self.state(daemon, "admin"))
        self.assertEqual(demo["instance"]["id"], loaded["ready"]["id"])
        self.assertGreater(demo["instance"]["resident_bytes"], 0)

        status, refused = self.ask(daemon, "POST", "/api/models/demo/unload", "client", {})
        self.assertEqual((status, refused["error"]["code"]), (403, "permission_denied"))
        status, refused = self.ask(daemon, "POST", "/api/models/demo/unload", "admin",
                                   {"forse": True})
        self.assertEqual((status, refused["error"]["param"]), (400, "forse"))
        status, unloaded = self.ask(daemon, "POST", "/api/models/demo/unload", "admin", {})
        self.assertEqual(status, 200, unloaded)
        self.assertEqual(unloaded["instance_id"], loaded["ready"]["id"])
        status, refused = self.ask(daemon, "POST", "/api/models/nope/load", "admin", {})
        self.assertEqual((status, refused["error"]["code"]), (404, "unknown_model"))

    def test_i12_a_client_sees_no_paths(self) -> None:
        daemon = self.serve()
        self.answers(daemon)
        cut = self.state(daemon)
        self.assertEqual(self.model(cut)["instance"]["requests_served"], 1)
        self.assertNotIn(str(self.workspace.path), json.dumps(cut))
        self.assertEqual(cut["requests"], [], "those of another tenant")
        status, refused = self.ask(daemon, "POST", "/api/models/demo/unload", None, {})
        self.assertEqual((status, refused["error"]["code"]), (403, "permission_denied"))

    def test_an_admin_sees_everything(self) -> None:
        daemon = self.served()
        self.answers(daemon)
        everything = self.state(daemon, "admin")
        self.assertIn(str(self.workspace.path), json.dumps(everything))
        self.assertEqual(everything["requests"][0]["state"], "finished")
        self.assertEqual(self.state(daemon, "client")["requests"], [])

    def test_events_are_streamed_and_gone_on_with(self) -> None:
        daemon = self.serve()
        with self.open(daemon, "GET", "/api/events?prefix=load.") as stream:
            self.assertEqual(stream.headers["Content-Type"], "text/event-stream")
            self.succeeds(daemon, "load", "demo")
            name, number = "", 0
            while name != "load.ready":
                line = stream.readline().decode().rstrip("\n")
                if line.startswith("id: "):
                    number = int(line.removeprefix("id: "))
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
        with self.open(daemon, "GET", "/api/events?follow=0",
                       headers={"Last-Event-ID": str(number - 1)}) as stream:
            first = [stream.readline().decode().rstrip("\n") for _ in range(3)]
        self.assertEqual(first[:2], [f"id: {number}", "event: load.ready"])
        event = json.loads(first[2].removeprefix("data: "))
        self.assertEqual((event["sequence"], event["level"]), (number, "info"))

    def test_failures_and_logs(self) -> None:
        daemon = self.served(FAILING)
        status, refused = self.ask(daemon, "POST", "/api/models/broken/load", "admin", {})
        self.assertEqual((status, refused["error"]["code"]), (503, "load_failed"), refused)
        status, failures = self.ask(daemon, "GET", "/api/failures")
        self.assertEqual(status, 200)
        self.assertEqual([one["model"] for one in failures["failures"]], ["broken"])
        self.assertEqual(self.model(self.state(daemon), "broken")["state"], "failed")

        self.answers(daemon)
        status, _ = self.ask(daemon, "GET", "/api/models/demo/log", "client")
        self.assertEqual(status, 403)
        with self.open(daemon, "GET", "/api/models/demo/log?tail=5", "admin") as log:
            self.assertTrue(log.headers["Content-Type"].startswith("text/plain"))
            self.assertLessEqual(len(log.read().splitlines()), 5)

    def test_a_request_is_cancelled_by_its_id(self) -> None:
        self.make_endless_model()
        daemon = self.served(models=())
        client = self.endless_stream(daemon)
        running = self.state(daemon, "admin")["requests"][0]
        self.assertEqual(running["state"], "generating")
        status, refused = self.ask(daemon, "POST", f"/api/requests/{running['id']}/cancel",
                                   "client", {})
        self.assertEqual(status, 403, refused)
        status, _ = self.ask(daemon, "POST", f"/api/requests/{running['id']}/cancel", "admin", {})
        self.assertEqual(status, 200)
        self.assertEqual(client.wait(), 1)
        daemon.wait_event("request.cancelled", request=running["id"])
        self.assertEqual(self.state(daemon, "admin")["requests"][0]["state"], "cancelled")

    def test_t87_scraping_does_not_keep_a_model(self) -> None:
        daemon = self.serve('[defaults]\nttl = "2s"\n')
        self.answers(daemon)
        while not daemon.events("instance.exited"):
            with self.open(daemon, "GET", "/metrics") as answer:
                text = answer.read().decode()
            self.assertIn("version=0.0.4", answer.headers["Content-Type"])
            self.state(daemon)
        self.assertEqual(daemon.events("instance.stopping")[0]["cause"], "idle")
        self.assertIn('berth_requests_total{model="demo",reason="finished"} 1', text)
        self.assertEqual(len(daemon.events("load.started")), 1)

    def test_t16_reads_answer_while_a_model_loads(self) -> None:
        daemon = self.serve(SLOW)
        load = self.background(daemon, "load", "slow")
        daemon.wait_event("load.started", model="slow")
        connection = http.client.HTTPConnection(daemon.http, timeout=DEADLINE)
        self.addCleanup(connection.close)
        for path in ("/api/state", "/api/failures", "/metrics", "/livez", "/readyz"):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200, path)
        self.assertIn(self.model(self.state(daemon), "slow")["state"], ("starting", "loading"))
        self.succeeds(daemon, "unload", "slow", "--force")
        load.wait()
