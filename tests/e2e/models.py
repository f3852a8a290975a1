"""Models that are missing, broken, unreadable or unknown: each says what is wrong with it, and
harms no other."""

import ctypes
import os
import subprocess

from programs import DEADLINE
from scenario import Scenario

# Faults of make_gguf that the file's header shows, and what the report must contain.
HEADER_FAULTS = {
    "bad-magic": "not a GGUF file",
    "empty": "empty",
    "truncated-header": "truncated",
    "truncated-data": "truncated",
    "missing-shard": "00002-of-00002",
    "impossible-size": "impossible size",
    "wrong-version": "version",
}
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2


def obey_file_modes() -> None:
    """Root loses the right to read what its mode forbids, from the next exec on."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


class Models(Scenario):

    def catalogue(self, daemon) -> dict[str, dict]:
        return {model["name"]: model for model in daemon.json("models")["models"]}

    def break_model(self, fault: str) -> None:
        subprocess.run([str(self.build / "bin" / "make_gguf"), "--broken", fault,
                        str(self.workspace.models / f"{fault}.gguf")],
                       check=True, capture_output=True, timeout=DEADLINE)

    def test_T13_broken_files_are_listed_with_the_reason(self) -> None:
        for fault in HEADER_FAULTS:
            self.break_model(fault)
        daemon = self.serve()
        catalogue = self.catalogue(daemon)
        for fault, expected in HEADER_FAULTS.items():
            name = next((one for one in catalogue if one.startswith(fault)), None)
            self.assertIsNotNone(name, f"{fault} is not listed: {sorted(catalogue)}")
            problem = catalogue[name].get("problem", "")
            self.assertIn(expected, problem)
            said = self.fails(daemon, "complete", name, "hello")
            self.assertIn(expected, said)
            self.assertIn(expected, self.succeeds(daemon, "models"))
        self.assertEqual(daemon.events("load.started"), [])
        self.assertEqual(catalogue["demo"].get("problem", ""), "")
        self.answers(daemon)

    def test_T1_a_failed_load_says_why_and_T9_harms_no_other(self) -> None:
        for fault in ("unknown-architecture", "missing-tensor"):
            self.break_model(fault)
        daemon = self.serve()
        for fault in ("unknown-architecture", "missing-tensor"):
            said = self.fails(daemon, "load", fault)
            self.assertIn("permanent", said)
            self.assertIn("record", said)
            self.assertNotIn(str(self.workspace.models) + "/", said.split("command:")[0])
            daemon.wait_event("load.failed", model=fault)
        self.answers(daemon)

    def test_missing_file_of_a_configured_model(self) -> None:
        gone = self.workspace.path / "gone.gguf"
        daemon = self.serve(f'[model."gone"]\npath = "{gone}"\n')
        self.assertIn("gone.gguf", self.catalogue(daemon)["gone"]["problem"])
        self.fails(daemon, "complete", "gone", "hello")
        self.answers(daemon)

    def test_unreadable_file(self) -> None:
        self.make_model("secret").chmod(0)
        daemon = self.serve(preexec=obey_file_modes)
        self.assertIn("ermission", self.catalogue(daemon)["secret"]["problem"])
        self.assertIn("ermission", self.fails(daemon, "complete", "secret", "hello"))
        self.answers(daemon)

    def test_what_is_no_file_is_no_model(self) -> None:
        os.mkfifo(self.workspace.models / "pipe.gguf")
        (self.workspace.models / "folder.gguf").mkdir()
        (self.workspace.models / "dangling.gguf").symlink_to("nowhere")
        daemon = self.serve()
        catalogue = self.catalogue(daemon)
        self.assertTrue(catalogue["dangling"]["problem"])
        for name in ("pipe", "folder"):
            self.assertTrue(name not in catalogue or catalogue[name]["problem"], name)
        self.answers(daemon)

    def test_file_that_vanished_after_the_scan(self) -> None:
        vanishing = self.make_model("vanishing")
        daemon = self.serve()
        vanishing.unlink()
        self.fails(daemon, "complete", "vanishing", "hello")
        self.answers(daemon)

    def test_unknown_name_offers_the_nearest(self) -> None:
        daemon = self.serve(models=("demo", "other"))
        for verb in (("complete", "dmeo", "hello"), ("chat", "dmeo", "hello"), ("load", "dmeo")):
            said = self.fails(daemon, *verb)
            self.assertIn("dmeo", said)
            self.assertIn("demo", said.replace("dmeo", ""))

    def test_no_model_at_all(self) -> None:
        file = self.workspace.system_config()
        daemon = self.berthd(arguments=["--config", str(file)]).wait_listening()
        self.assertEqual(daemon.json("models").get("models", []), [])
        self.assertEqual(daemon.get("/readyz")[0], 200)
        self.fails(daemon, "complete", "demo", "hello")

    def test_L23_a_model_that_comes_or_goes_is_noticed(self) -> None:
        daemon = self.serve()
        start = len(daemon.output.lines())
        self.workspace.add_model("newcomer")
        daemon.wait_event("catalog.scanned", start=start, models=2)
        self.answers(daemon, "newcomer")
        start = len(daemon.output.lines())
        (self.workspace.models / "newcomer.gguf").unlink()
        daemon.wait_event("catalog.scanned", start=start, models=1)
        self.fails(daemon, "complete", "newcomer", "hello")
        self.answers(daemon)
