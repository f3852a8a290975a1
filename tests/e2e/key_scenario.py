"""Scenarios with a file of keys."""

import programs
from scenario import Scenario

# For a demo's configuration; `key_file()` is that file.
KEYS = '[auth]\nkeys_file = "keys"\n'


class KeyScenario(Scenario):

    def key_file(self) -> str:
        return str(self.workspace.path / "keys")

    def keys(self, *arguments: str, code: int = 0) -> str:
        """`berth keys`, without a daemon."""
        done = programs.run_berth(self.build, "keys", *arguments, "--keys-file", self.key_file())
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return (done.stdout if code == 0 else done.stderr).decode()

    def add_key(self, name: str, *options: str) -> str:
        return self.keys("add", name, *options).strip()
