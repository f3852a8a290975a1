"""Memory domains: what a daemon finds of them, what its configuration says, and what it tells."""

import signal
from pathlib import Path

import programs
from scenario import Scenario

BUDGET = '[memory]\nhost_budget = "{}"\n'


class MemoryScenario(Scenario):

    def test_M1_the_budget_of_the_host_holds_and_changes_with_a_reload(self) -> None:
        daemon = self.serve(BUDGET.format("300MiB"))
        first = daemon.wait_event("memory.domains")
        self.assertIn("host: 300", first["domains"])
        self.answers(daemon)
        self.workspace.config(BUDGET.format("700MiB"))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.output.wait_for(lambda line: "memory.domains" in line and "host: 700" in line,
                               "the other budget")
        self.answers(daemon)

    def test_M1_a_device_and_memory_that_are_not_there_are_told(self) -> None:
        daemon = self.serve(BUDGET.format("900TiB") + '[memory.devices."GPU-none"]\nbudget = "1GiB"\n')
        for problem in ("GPU-none", "memory.host_budget"):
            daemon.output.wait_for(
                lambda line, said=problem: "server.degraded" in line and said in line, problem)
        self.answers(daemon)

    def test_M17_a_model_whose_device_is_not_there_is_told_until_the_configuration_is_mended(
            self) -> None:
        lost = '[model.demo]\ndevices = ["CUDA77"]\n'
        daemon = self.serve(lost + "gpu_layers = 0\n")
        said = daemon.wait_event("server.degraded", part="model")["problem"]
        self.assertIn("demo cannot be loaded: Its device CUDA77 is not there", said)
        self.assertIn("Its device CUDA77 is not there", daemon.berth("doctor").stdout.decode())
        model = next(one for one in daemon.json("models")["models"] if one["name"] == "demo")
        self.assertIn("Its device CUDA77 is not there", model["problem"])
        self.assertIn("Its device CUDA77 is not there", self.succeeds(daemon, "why", "demo"))
        self.fails(daemon, "complete", "demo", "x")
        self.workspace.config("")
        before = len(daemon.output.lines())
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_event("catalog.scanned", start=before)
        self.assertEqual(daemon.json("why", "demo").get("problem", ""), "")
        self.assertNotIn("CUDA77", daemon.berth("doctor").stdout.decode())
        self.answers(daemon)

    def test_M2_T58_without_a_model_no_process_of_ours_holds_a_device(self) -> None:
        daemon = self.serve()
        daemon.wait_event("memory.domains")
        pid = daemon.process.pid
        self.assertEqual(list(programs.descendants(pid)), [], "what listed the devices is gone")
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
        for library in ("libggml", "libllama", "libcuda.", "libcudart", "libvulkan"):
            self.assertNotIn(library, maps)
        opened = [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()
                  if file.is_symlink()]
        for device in ("/dev/dri", "/dev/kfd", "/dev/nvidia-uvm"):
            self.assertFalse([name for name in opened if name.startswith(device)], opened)
