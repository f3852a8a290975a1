"""Broken GGUF files through the real worker: each fails at once, says why, and leaves nothing."""

from fault_scenario import FaultScenario, broken_file

# What the header shows is refused before a process is started, and is no failure of a load (L25).
KINDS = ("unknown-architecture", "bad-magic", "empty", "truncated-header", "truncated-data",
         "missing-tensor", "missing-shard", "impossible-size", "wrong-version", "no-tokenizer")


class BrokenFiles(FaultScenario):

    def test_L15_L25_each_broken_file_fails_with_a_reason_and_leaves_nothing(self) -> None:
        for kind in KINDS:
            broken_file(self.build, kind, self.workspace.models / f"{kind}.gguf")
        daemon = self.serve()
        for kind in KINDS:
            with self.subTest(kind):
                model = next(one["name"] for one in daemon.json("models")["models"]
                             if one["name"].startswith(kind))
                said = self.fails(daemon, "complete", model, "hello")
                print(f"{kind}: {said.splitlines()[0]}")
                self.assertNotIn(str(self.workspace.path), said.splitlines()[0])
                failed = [one for one in daemon.events("load.failed") if one["model"] == model]
                started = [one for one in daemon.events("load.started") if one["model"] == model]
                self.assertEqual(len(failed), len(started))
                if started:
                    record = self.record(daemon, model)
                    self.assertEqual(record["class"], "permanent", record)
                    self.assertTrue(record["reason"])
                    self.assert_stays_refused(daemon, model)
                self.assert_nothing_left(daemon)
        self.answers(daemon)
