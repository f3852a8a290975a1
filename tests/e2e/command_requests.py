"""Requests to models with kind = "command": asked of programs that berth did not write."""

import http.client
import json
import time
from pathlib import Path

from command_workers import section
from programs import DEADLINE, Berthd
from scenario import Scenario


class CommandRequests(Scenario):

    def serve_program(self, *arguments: str, more: str = "") -> Berthd:
        more += f"directory = {json.dumps(str(self.workspace.path))}\n"
        return self.serve(section("prog", "--port", "{port}", "--key", "{api_key}", *arguments,
                                  more=more), models=())

    def log_path(self) -> Path:
        return self.workspace.path / "log" / "prog.log"

    def got(self) -> list[dict]:
        """The requests that the program was sent."""
        lines = self.log_path().read_text(errors="replace").splitlines()
        return [json.loads(line.removeprefix("got ")) for line in lines if line.startswith("got ")]

    def wait_log(self, text: str) -> None:
        end = time.monotonic() + DEADLINE
        while text not in self.log_path().read_text(errors="replace"):
            self.assertLess(time.monotonic(), end, f"the program's log never says {text!r}")
            time.sleep(0.01)  # polls: nobody tells of it

    # --- By gRPC.

    def test_L27_a_request_starts_the_program_and_is_answered_by_it(self) -> None:
        daemon = self.serve_program()
        self.assertEqual(self.succeeds(daemon, "chat", "prog", "say one two").strip(), "onetwo")
        self.assertEqual(self.succeeds(daemon, "complete", "prog", "say three").strip(), "three")
        self.assertEqual(daemon.instance("prog")["state"], "ready")
        last = json.loads(self.got()[-1]["body"])
        self.assertEqual(last["model"], "their-name")
        self.assertTrue(last["stream"])
        self.assertEqual({request["key"] for request in self.got()}, {"its own"})

    def test_L27_a_program_at_a_unix_socket_is_asked_there(self) -> None:
        daemon = self.serve(section("prog", "--uds", "{socket}"), models=())
        self.assertEqual(self.succeeds(daemon, "chat", "prog", "say it").strip(), "it")

    def test_L27_the_usage_and_the_end_are_the_programs(self) -> None:
        daemon = self.serve_program()
        printed = self.succeeds(daemon, "complete", "prog", "say a b", "--json")
        events = [json.loads(line) for line in printed.splitlines()]
        done = next(event["done"] for event in events if "done" in event)
        self.assertEqual(done["finish_reason"], "stop")
        self.assertEqual(int(done["usage"]["prompt_tokens"]), 3)

    def test_L27_a_program_that_is_asked_for_a_path_is_asked_for_work_too(self) -> None:
        daemon = self.serve_program(more='probe = "path:/health"\n')
        self.assertEqual(self.succeeds(daemon, "complete", "prog", "say it").strip(), "it")

    def test_L27_what_the_program_refuses_is_told_in_its_words(self) -> None:
        daemon = self.serve_program()
        said = self.fails(daemon, "complete", "prog", "status 400 too long: /secret/place it is")
        self.assertIn("too long", said)
        self.assertNotIn("secret", said)
        self.assertIn("500", self.fails(daemon, "complete", "prog", "status 500 oops"))
        self.assertIn("busy", self.fails(daemon, "complete", "prog", "status 429 busy"))
        self.assertEqual(self.succeeds(daemon, "complete", "prog", "say on").strip(), "on")

    def test_L9_L27_an_answer_that_breaks_off_is_an_error(self) -> None:
        daemon = self.serve_program()
        for what in ("break", "no end", "huge"):
            self.fails(daemon, "complete", "prog", what)
        self.assertEqual(self.succeeds(daemon, "complete", "prog", "say on").strip(), "on")
        self.assertEqual(len(daemon.events("load.started")), 1)

    def test_L9_T72_a_program_that_dies_is_said_to_and_loaded_again(self) -> None:
        daemon = self.serve_program()
        self.succeeds(daemon, "load", "prog")
        said = self.fails(daemon, "complete", "prog", "die")
        self.assertIn("3", said)  # its exit status
        self.assertEqual(self.succeeds(daemon, "complete", "prog", "say on").strip(), "on")

    def test_T31_a_client_that_hangs_up_ends_the_programs_work(self) -> None:
        daemon = self.serve_program()
        client = self.background(daemon, "complete", "prog", "endless", "--json")
        client.output.wait_for(lambda line: '"token"' in line, "the first token")
        client.stop()
        self.wait_log("client gone")
        daemon.wait_event("request.cancelled", model="prog")

    def test_L3_a_forced_unload_ends_what_runs(self) -> None:
        daemon = self.serve_program()
        client = self.background(daemon, "complete", "prog", "endless", "--json")
        client.output.wait_for(lambda line: '"token"' in line, "the first token")
        self.succeeds(daemon, "unload", "prog", "--force")
        self.assertEqual(client.wait(), 1)

    # --- By HTTP.

    def post(self, daemon: Berthd, path: str, body: str) -> http.client.HTTPResponse:
        """Sends the body as it is; the answer is still to be read."""
        connection = http.client.HTTPConnection(daemon.http, timeout=DEADLINE)
        self.addCleanup(connection.close)
        connection.request("POST", path, body.encode(), {"Content-Type": "application/json"})
        return connection.getresponse()

    @staticmethod
    def events_of(text: str) -> list[str]:
        return [line.removeprefix("data: ") for line in text.splitlines()
                if line.startswith("data: ")]

    def test_L27_a_body_is_passed_on_byte_for_byte_but_for_the_model(self) -> None:
        daemon = self.serve_program()
        body = ('{"z":18446744073709551615, "model" : "prog","a":1.50e+00,"a":2,'
                '"x":"\\u00e9\u00e9\\/","prompt":"say \\"model\\""}')
        answer = self.post(daemon, "/v1/completions", body)
        self.assertEqual(answer.status, 200)
        said = json.loads(answer.read())
        self.assertEqual(said["model"], "prog")
        self.assertEqual(said["choices"][0]["text"], '"model"')
        self.assertEqual(self.got()[-1]["body"], body.replace('"prog"', '"their-name"'))
        self.assertEqual(self.got()[-1]["key"], "its own")

    def test_L27_a_stream_is_passed_on_with_our_name(self) -> None:
        daemon = self.serve_program()
        answer = self.post(daemon, "/v1/chat/completions", json.dumps(
            {"model": "prog", "stream": True, "messages": [{"role": "user", "content": "tools"}]}))
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.getheader("Content-Type").startswith("text/event-stream"))
        self.assertTrue(answer.getheader("X-Request-Id"))
        events = self.events_of(answer.read().decode())
        self.assertEqual(events[-1], "[DONE]")
        chunk = json.loads(events[0])
        self.assertEqual(chunk["model"], "prog")
        self.assertEqual(chunk["choices"][0]["delta"]["tool_calls"][0]["id"], "call-1")

    def test_L27_lines_of_any_length_pass(self) -> None:
        daemon = self.serve_program()
        answer = self.post(daemon, "/v1/completions",
                           '{"model":"prog","stream":true,"prompt":"huge"}')
        events = self.events_of(answer.read().decode())
        self.assertEqual(len(json.loads(events[0])["choices"][0]["text"]), 5 << 20)
        self.assertEqual(events[-1], "[DONE]")

    def test_L27_refusals_of_the_program_are_passed_on(self) -> None:
        daemon = self.serve_program()
        for status in (400, 404, 422, 429, 500, 503):
            answer = self.post(daemon, "/v1/completions",
                               '{"model":"prog","prompt":"status %d its words"}' % status)
            self.assertEqual(answer.status, status)
            self.assertEqual(json.loads(answer.read()), {"error": {"message": "its words"}})
        answer = self.post(daemon, "/v1/completions", '{"model":"prog","prompt":"status 401 key"}')
        self.assertEqual(answer.status, 500)
        self.assertEqual(json.loads(answer.read())["error"]["code"], "internal")

    def test_L9_L27_a_stream_that_breaks_off_ends_in_an_error_event(self) -> None:
        daemon = self.serve_program()
        for what in ("break", "no end", "die"):
            answer = self.post(daemon, "/v1/completions",
                               '{"model":"prog","stream":true,"prompt":"%s"}' % what)
            events = self.events_of(answer.read().decode())
            self.assertEqual(json.loads(events[0])["choices"][0]["text"], "half")
            self.assertEqual(json.loads(events[-1])["error"]["code"], "worker_died")

    def test_T31_an_http_client_that_hangs_up_ends_the_programs_work(self) -> None:
        daemon = self.serve_program()
        connection = http.client.HTTPConnection(daemon.http, timeout=DEADLINE)
        connection.request("POST", "/v1/completions",
                           '{"model":"prog","stream":true,"prompt":"endless"}',
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read(10)
        answer.close()
        connection.close()
        self.wait_log("client gone")
        daemon.wait_event("request.cancelled", model="prog")

    def test_L27_vectors_are_passed_on(self) -> None:
        daemon = self.serve_program(more='probe = "embedding"\n')
        answer = self.post(daemon, "/v1/embeddings", '{"model":"prog","input":["a","b"]}')
        said = json.loads(answer.read())
        self.assertEqual(said["model"], "prog")
        self.assertEqual(said["data"][1]["embedding"], [3.0, 4.0])


if __name__ == "__main__":
    import unittest
    unittest.main()
