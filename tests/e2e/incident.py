"""Python servers as commands: the incident, a traceback and then silence behind an HTTP endpoint that
goes on answering, and its kin."""

from fault_scenario import MLX_LIKE, OPENAI_PROGRAM, FaultScenario

UNSUPPORTED = "ValueError: Model type glm_ocr_next not supported."


class Incident(FaultScenario):

    def test_L7_L13_a_traceback_and_then_silence_with_health_answering(self) -> None:
        config = self.python_command("mlx", MLX_LIKE, "--model-type", "zebra")
        daemon = self.fault_daemon(config).wait_listening()
        said = self.fails(daemon, "load", "mlx")
        event = self.after_failure(daemon, "mlx")
        record = self.record(daemon, "mlx")
        self.assertEqual((record["class"], record["reason"]),
                         ("permanent", "ValueError: Model type zebra not supported."))
        self.assertEqual(event["record"], record["id"])
        self.assertEqual(record["signal"], "", "our signal is no cause (L20)")
        self.assertIn(record["reason"], said)
        self.assert_stays_refused(daemon, "mlx")

    def test_L13_a_chained_traceback_and_exit_1(self) -> None:
        config = self.python_command("raises", OPENAI_PROGRAM, "--raise")
        daemon = self.fault_daemon(config).wait_listening()
        said = self.fails(daemon, "load", "raises")
        self.after_failure(daemon, "raises")
        record = self.record(daemon, "raises")
        self.assertEqual((record["class"], record["reason"]), ("permanent", UNSUPPORTED))
        self.assertIn(UNSUPPORTED, said)
        self.assert_stays_refused(daemon, "raises")

    def test_L14_a_traceback_that_the_program_survives(self) -> None:
        config = self.python_command("survivor", MLX_LIKE, "--survives")
        daemon = self.fault_daemon(config).wait_listening()
        self.succeeds(daemon, "load", "survivor")
        self.assertEqual(daemon.instance("survivor")["state"], "ready")
        self.assert_no_mark(daemon, "survivor")

    def test_L8_a_program_that_answers_and_is_never_ready_stalls(self) -> None:
        config = self.python_command("hangs", MLX_LIKE, "--hangs", "--refuses",
                                     more='load_stall = "3s"\n')
        daemon = self.fault_daemon(config).wait_listening()
        self.fails(daemon, "load", "hangs")
        self.after_failure(daemon, "hangs")
        self.assertEqual(self.record(daemon, "hangs")["class"], "stalled")


if __name__ == "__main__":
    import unittest
    unittest.main()
