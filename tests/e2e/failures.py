"""Loads that cannot succeed: remembered, explained, lifted when something moves, tried again by
hand."""

import os

from fault_scenario import broken_file
from programs import Berthd
from scenario import Scenario

BROKEN = "unknown-architecture"


class Failures(Scenario):

    def broken_model(self) -> None:
        self.file = self.workspace.models / f"{BROKEN}.gguf"
        broken_file(self.build, BROKEN, self.file)

    def loads(self, daemon: Berthd) -> int:
        return len(daemon.events("load.started"))

    def standing(self, daemon: Berthd) -> dict:
        failures = daemon.json("failures", BROKEN)["failures"]
        self.assertEqual(len(failures), 1, failures)
        return failures[0]

    def test_L18_L22_a_broken_model_fails_once_and_why_tells_the_reason(self) -> None:
        self.broken_model()
        daemon = self.serve()
        said = self.fails(daemon, "complete", BROKEN, "hello")
        self.assertIn("unknown model architecture", said)
        self.assertEqual(self.loads(daemon), 1)

        said = self.fails(daemon, "complete", BROKEN, "hello")
        self.assertEqual(self.loads(daemon), 1, "a second request starts no process")
        for part in ("unknown model architecture", "permanent", "not tried again",
                     f"berth why {BROKEN}", f"berth retry {BROKEN}"):
            self.assertIn(part, said)

        table = self.succeeds(daemon, "failures")
        self.assertIn(BROKEN, table)
        self.assertIn("unknown model architecture", table)
        record = self.standing(daemon)
        self.assertEqual(record["class"], "permanent")
        self.assertIn(record["id"], said)
        self.assertTrue(record["command"], "who comes by the socket is an admin")
        self.assertTrue(record["log_tail"])
        self.assertNotIn(str(self.workspace.path), record["reason"])
        self.assertEqual([memory["domain"] for memory in record["memory"]], ["host"])

        text = self.succeeds(daemon, "why", BROKEN)
        for part in ("is not loaded", "permanent: ", "unknown model architecture", record["id"],
                     "a restart of the daemon does not lift it", str(self.file), "berth-worker",
                     f"berth retry {BROKEN}", "The last loads", "failed"):
            self.assertIn(part, text)
        report = daemon.json("why", BROKEN)
        self.assertEqual(report["standing"]["id"], record["id"])
        self.assertEqual(report["state"], "failed")
        self.assertEqual([load["outcome"] for load in report["loads"]], ["failed"])

        self.answers(daemon)
        self.assertIn("no failure stands against it", self.succeeds(daemon, "why", "demo"))
        self.assertEqual(daemon.json("failures", "demo")["failures"], [])
        for verb in ("why", "retry", "failures"):
            said = self.fails(daemon, verb, "dmeo")
            self.assertIn("demo", said.replace("dmeo", ""))

    def test_T2_T3_it_is_shown_as_failed_with_its_command_until_it_is_lifted(self) -> None:
        self.broken_model()
        daemon = self.serve()
        states = lambda: {model["name"]: model for model in daemon.json("models")["models"]}
        self.assertEqual(states()[BROKEN]["state"], "absent")
        said = self.fails(daemon, "load", BROKEN)
        for part in (f"--model {self.file}", "berth-worker"):
            self.assertIn(part, said, "the command that was started")
        record = self.standing(daemon)
        for part in (str(self.file), "GGML_NO_BACKTRACE=1"):
            self.assertIn(part, self.succeeds(daemon, "why", BROKEN))

        failed = states()[BROKEN]
        self.assertEqual(failed["state"], "failed")
        self.assertEqual(failed["failure"]["id"], record["id"])
        self.assertEqual(failed["failure"]["class"], "permanent")
        self.assertEqual(failed["failure"]["reason"], record["reason"])
        self.assertGreater(failed["failure"]["since_unix_ms"], 0)
        self.assertEqual(states()["demo"]["state"], "absent")
        self.assertIn("unknown model architecture", self.succeeds(daemon, "models"))

        self.workspace.add_model(BROKEN)
        daemon.wait_event("failure.lifted", model=BROKEN)
        self.assertEqual(states()[BROKEN]["state"], "absent")

    def test_L21_L23_it_outlives_a_restart_and_a_file_written_again_lifts_it(self) -> None:
        self.broken_model()
        first = self.serve()
        self.fails(first, "complete", BROKEN, "hello")
        record = self.standing(first)
        self.assertEqual(first.stop(), 0)

        second = self.berthd().wait_listening()
        self.assertEqual(self.standing(second)["id"], record["id"])
        self.assertIn(record["id"], self.fails(second, "complete", BROKEN, "hello"))
        self.assertEqual(self.loads(second), 0, "a restart tries nothing")

        os.utime(self.file)
        event = second.wait_event("failure.lifted", model=BROKEN, record=record["id"])
        self.assertEqual(event["cause"], "provenance")
        self.assertIn("no failure stands", self.succeeds(second, "failures"))
        self.assertIn("the model's files moved", self.succeeds(second, "failures", "--all"))
        lifted = second.json("failures", BROKEN, "--all")["failures"]
        self.assertEqual([(one["id"], one["lifted"]["field"]) for one in lifted],
                         [(record["id"], "files")])

        self.fails(second, "complete", BROKEN, "hello")
        self.assertEqual(self.loads(second), 1)
        self.assertNotEqual(self.standing(second)["id"], record["id"])

    def test_L23_another_window_lifts_it_at_the_next_start(self) -> None:
        self.broken_model()
        first = self.serve()
        self.fails(first, "complete", BROKEN, "hello")
        record = self.standing(first)
        self.assertEqual(first.stop(), 0)

        self.workspace.config(f'[model."{BROKEN}"]\ncontext = 64\n')
        second = self.berthd().wait_listening()
        self.assertEqual(second.json("failures")["failures"], [])
        lifted = second.json("failures", BROKEN, "--all")["failures"]
        self.assertEqual([(one["id"], one["lifted"]["field"]) for one in lifted],
                         [(record["id"], "window")])

    def test_L23_L24_a_retry_lifts_it_and_its_failure_is_a_new_record(self) -> None:
        self.broken_model()
        daemon = self.serve()
        self.fails(daemon, "complete", BROKEN, "hello")
        first = self.standing(daemon)
        done = daemon.berth("retry", BROKEN)
        self.assertEqual(done.returncode, 1)
        self.assertIn("lifted the failure of", done.stdout.decode())
        self.assertIn("unknown model architecture", done.stderr.decode())
        self.assertEqual(self.loads(daemon), 2)
        second = self.standing(daemon)
        self.assertNotEqual(second["id"], first["id"])
        self.assertNotEqual(second["instance_id"], first["instance_id"])
        both = daemon.json("failures", BROKEN, "--all")["failures"]
        self.assertEqual([one["id"] for one in both], [second["id"], first["id"]])
        self.assertEqual(both[1]["lifted"]["cause"], "hand")
        self.assertIn("by hand", self.succeeds(daemon, "why", BROKEN))

        # A file that can be loaded: the retry ends ready, and nothing stands any more.
        self.workspace.add_model(BROKEN)
        daemon.wait_event("failure.lifted", model=BROKEN, record=second["id"])
        self.assertIn("is ready", self.succeeds(daemon, "retry", BROKEN))
        self.assertEqual(daemon.json("failures")["failures"], [])
        self.answers(daemon, BROKEN)
