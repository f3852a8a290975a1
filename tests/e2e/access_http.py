"""Who gets in over HTTP, as what, and how much of it: keys, roles, entitlement, limits."""

import http.client
import json

import programs
from key_scenario import KEYS, KeyScenario

COMPLETION = {"model": "demo", "prompt": "once", "max_tokens": 1}


class Answer:
    """One HTTP answer."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode()

    @property
    def error(self) -> dict:
        return json.loads(self.text)["error"]


class AccessHttp(KeyScenario):

    def ask(self, daemon: programs.Berthd, path: str, key: str = "", body: dict | None = None,
            **headers: str) -> Answer:
        return Answer(self.begin(daemon, path, key, body, **headers))

    def begin(self, daemon: programs.Berthd, path: str, key: str = "", body: dict | None = None,
              **headers: str) -> http.client.HTTPResponse:
        """An answer that may still come."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            sent["Authorization"] = f"Bearer {key}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        host, port = daemon.http.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=programs.DEADLINE)
        self.addCleanup(connection.close)
        connection.request("GET" if body is None else "POST", path,
                           None if body is None else json.dumps(body), sent)
        return connection.getresponse()

    def test_a_key_is_taken_and_refused_the_moment_the_file_says_so(self) -> None:
        first = self.add_key("first")
        daemon = self.serve(KEYS)
        self.assertEqual(daemon.wait_event("keys.reloaded")["keys"], 1)
        self.assertEqual(self.ask(daemon, "/v1/models", first).status, 200)
        self.assertEqual(self.ask(daemon, "/v1/models").status, 200, "loopback needs none")
        wrong = self.ask(daemon, "/v1/models", "berth-wrong")
        self.assertEqual(wrong.status, 401, wrong.text)
        self.assertEqual(wrong.error["code"], "unauthenticated")
        self.assertEqual(wrong.headers.get("x-should-retry"), "false")

        second = self.add_key("second")
        daemon.wait_event("keys.reloaded", keys=2)
        self.assertEqual(self.ask(daemon, "/v1/models", second).status, 200)
        start = len(daemon.output.lines())
        self.keys("revoke", "first")
        daemon.wait_event("keys.reloaded", start=start, keys=1)
        revoked = self.ask(daemon, "/v1/models", first)
        self.assertEqual(revoked.status, 401)
        self.assertEqual(revoked.error["message"], wrong.error["message"])
        self.assertEqual(self.ask(daemon, "/v1/models", second).status, 200)
        self.assertEqual(self.ask(daemon, "/livez", first).status, 200, "needs no key")

    def test_what_is_watched_with_a_key_ends_when_it_is_revoked(self) -> None:
        client, admin = self.add_key("client"), self.add_key("ops", "--role", "admin")
        daemon = self.serve(KEYS)
        self.assertEqual(self.ask(daemon, "/v1/completions", client, COMPLETION).status, 200)
        events = self.begin(daemon, "/api/events", client)
        log = self.begin(daemon, "/api/models/demo/log?follow=1", admin)
        self.assertEqual((events.status, log.status), (200, 200))
        self.keys("revoke", "client")
        self.keys("revoke", "ops")
        text = events.read().decode()
        self.assertIn("\nevent: unauthenticated\ndata: {", text)
        with self.assertRaises(http.client.IncompleteRead):
            log.read()

    def test_a_broken_file_keeps_the_keys(self) -> None:
        key = self.add_key("alice")
        daemon = self.serve(KEYS)
        with open(self.key_file(), "a", encoding="utf-8") as file:
            file.write("bob:client\n")
        problem = daemon.wait_event("keys.rejected")["problem"]
        self.assertIn(f"{self.key_file()}:2: expected name:role:tenant_group:hash", problem)
        self.assertEqual(self.ask(daemon, "/v1/models", key).status, 200)
        self.assertIn("keys:2", self.succeeds(daemon, "version", "--json"))

    def test_where_there_are_no_keys_none_is_wrong(self) -> None:
        # Many of OpenAI's clients cannot be told to send none.
        daemon = self.serve()
        self.assertEqual(self.ask(daemon, "/v1/completions", "none", COMPLETION).status, 200)

    def test_a_rate_is_of_one_key_and_says_when_to_come_again(self) -> None:
        alice, bob = self.add_key("alice"), self.add_key("bob")
        daemon = self.serve(KEYS + "key_requests_per_minute = 1\n")
        self.assertEqual(self.ask(daemon, "/v1/completions", alice, COMPLETION).status, 200)
        refused = self.ask(daemon, "/v1/completions", alice, COMPLETION)
        self.assertEqual(refused.status, 429, refused.text)
        self.assertEqual(refused.error["code"], "rate_limited")
        self.assertTrue(1 <= int(refused.headers["retry-after"]) <= 60, refused.headers)
        self.assertEqual(self.ask(daemon, "/v1/completions", bob, COMPLETION).status, 200)
        self.assertEqual(self.ask(daemon, "/v1/completions", "", COMPLETION).status, 200)
        self.assertEqual(self.ask(daemon, "/v1/models", alice).status, 429, "whatever it is")
        self.assertEqual(self.ask(daemon, "/api/state", alice).status, 429)
        metrics = self.ask(daemon, "/metrics", alice)
        self.assertEqual(metrics.status, 200, "free")
        counted = 'berth_requests_total{model="",reason="rate_limited"} 3'
        self.assertIn(counted, metrics.text)

    def test_roles_decide_who_may_change_something(self) -> None:
        client, admin = self.add_key("client"), self.add_key("ops", "--role", "admin")
        daemon = self.serve(KEYS)
        for key, status in (("", 403), (client, 403), (admin, 200)):
            answer = self.ask(daemon, "/api/models/demo/load", key, {})
            self.assertEqual(answer.status, status, answer.text)

    def test_I12_a_stranger_gets_the_same_status_and_no_names(self) -> None:
        self.workspace.add_model("broken", self.workspace.config(""))
        daemon = self.serve(KEYS)
        body = COMPLETION | {"model": "broken"}
        direct = self.ask(daemon, "/v1/completions", "", body)
        stranger = self.ask(daemon, "/v1/completions", "", body, X_Forwarded_For="192.0.2.1")
        self.assertEqual(direct.status, 503, direct.text)
        self.assertEqual(stranger.status, direct.status)
        self.assertEqual(stranger.headers.get("retry-after"), direct.headers.get("retry-after"))
        self.assertEqual(stranger.error["code"], direct.error["code"])
        self.assertIn("broken", direct.error["message"])
        self.assertIn("failure", direct.error["detail"])
        self.assertNotIn("broken", stranger.error["message"])
        self.assertNotIn("failure", stranger.error.get("detail", {}))
        self.assertNotIn(str(self.workspace.path), direct.text)

        near = self.ask(daemon, "/v1/completions", "", COMPLETION | {"model": "dema"})
        far = self.ask(daemon, "/v1/completions", "", COMPLETION | {"model": "dema"}, Via="1.1 x")
        self.assertEqual((near.status, far.status), (404, 404))
        self.assertIn("demo", near.text)
        self.assertNotIn("demo", far.text)
