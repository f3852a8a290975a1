"""Disks that are full: serving goes on."""

import os
import stat
import subprocess
import unittest
from pathlib import Path

from programs import DEADLINE
from scenario import Scenario


class Storage(Scenario):

    def small_disk(self, name: str, kib: int) -> Path:
        folder = self.workspace.path / name
        folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "none", str(folder)],
                                 capture_output=True, check=False) if os.geteuid() == 0 else None
        if mounted is None or mounted.returncode != 0:
            raise unittest.SkipTest("a small disk needs the right to mount one")
        self.addCleanup(subprocess.run, ["umount", "--lazy", str(folder)], check=False,
                        timeout=DEADLINE)
        return folder

    @staticmethod
    def fill(folder: Path) -> None:
        with (folder / "filler").open("ab", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass

    def test_full_disk_for_logs_from_the_start(self) -> None:
        disk = self.small_disk("logs", 64)
        self.fill(disk)
        daemon = self.serve(f'[server]\nlog_dir = "{disk}"\n')
        self.answers(daemon)
        self.succeeds(daemon, "unload", "demo")
        self.answers(daemon)

    def test_disk_for_logs_fills_up_while_serving(self) -> None:
        disk = self.small_disk("logs", 256)
        daemon = self.serve(f'[server]\nlog_dir = "{disk}"\n')
        self.answers(daemon)
        self.fill(disk)
        self.answers(daemon)
        self.succeeds(daemon, "unload", "demo")
        self.answers(daemon)
        (disk / "filler").unlink()
        self.succeeds(daemon, "unload", "demo")
        self.answers(daemon)
        self.assertTrue(self.succeeds(daemon, "logs", "demo").strip())

    def test_full_disk_for_state(self) -> None:
        disk = self.small_disk("state", 512)
        daemon = self.serve(f'[server]\nstate_dir = "{disk}"\n')
        self.answers(daemon)
        self.fill(disk)
        self.succeeds(daemon, "unload", "demo")
        self.answers(daemon)
        self.assertEqual(daemon.get("/readyz")[0], 200)

    def test_L10_log_files_are_private(self) -> None:
        daemon = self.serve()
        self.answers(daemon)
        folder = Path(daemon.json("version").get("log_dir") or self.workspace.path / "log")
        files = [path for path in self.workspace.path.rglob("*.log") if "demo" in path.name]
        self.assertEqual(len(files), 1, f"log files under {folder}")
        self.assertEqual(stat.S_IMODE(files[0].stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(files[0].parent.stat().st_mode) & 0o077, 0)
