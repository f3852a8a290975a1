"""Loads whose log tells that they cannot succeed, with a worker that misbehaves on order."""

from fault_scenario import CHAIN, FRAMES, REASON, TRACEBACK, FaultScenario


class FatalLines(FaultScenario):

    def test_L7_a_traceback_and_then_silence(self) -> None:
        daemon, said, event = self.failed_load(f"load: print {TRACEBACK}\nstall")
        self.assertIn(REASON, said)
        self.assertEqual((event["failure_class"], event["reason"], event.get("exit", "")),
                         ("permanent", REASON, ""), "our signal is no cause of death (L20)")
        self.assertIn(REASON, self.fails(daemon, "complete", "faulty", "hello"))
        self.assertEqual(len(daemon.events("load.started")), 1, "it is remembered")

    def test_L7_before_the_worker_listens(self) -> None:
        _, said, event = self.failed_load(f"start: print {TRACEBACK}\nstall")
        self.assertIn(REASON, said)
        self.assertEqual(event["failure_class"], "permanent")

    def test_L21_the_line_before_a_crash_gives_its_class(self) -> None:
        _, _, event = self.failed_load(
            "load: print GGML_ASSERT(n_tokens > 0) failed\\n\nsignal ABRT")
        self.assertEqual(event["failure_class"], "crash")
        self.assertIn("GGML_ASSERT(n_tokens > 0) failed", event["reason"])

    def test_L21_a_crash_without_a_line_is_unclassified(self) -> None:
        _, _, event = self.failed_load("load: signal SEGV")
        self.assertEqual((event["failure_class"], event["exit"]), ("unclassified", "SIGSEGV"))

    def test_D2_a_flood_hides_no_verdict(self) -> None:
        _, said, event = self.failed_load(
            f"load: flood 32MiB\nprint {TRACEBACK}\n& flood 8MiB\nstall")
        self.assertIn(REASON, said)
        self.assertEqual(event["failure_class"], "permanent")

    def test_L13_a_traceback_that_was_survived(self) -> None:
        daemon = self.faulty(f"load: print {TRACEBACK}{CHAIN}{FRAMES}ConnectionResetError: peer\\n")
        self.assertIn("fault worker", self.succeeds(daemon, "complete", "faulty", "hello"))

    def test_L15_after_ready_a_line_is_no_verdict(self) -> None:
        daemon = self.faulty(f"request: print {TRACEBACK}")
        for _ in range(2):
            self.assertIn("fault worker", self.succeeds(daemon, "complete", "faulty", "hello"))
        self.assertEqual(len(daemon.events("load.started")), 1)
        self.assertEqual(daemon.events("load.failed"), [])
