"""Requests to models with kind = "command": asked of programs that berth did not write."""

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


if __name__ == "__main__":
    import unittest
    unittest.main()
