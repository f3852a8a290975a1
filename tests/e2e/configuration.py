"""A wrong configuration: berthd does not start, `berth config check` says the same, and both name the
file, the line, the key, what was expected, and the nearest key."""

import programs
from scenario import Scenario


class Configuration(Scenario):

    def rejected(self, config: str, marked: str, *expected: str) -> None:
        """The line of the config that contains `marked` is named with the expected texts."""
        file = self.workspace.config(config)
        lines = file.read_text().splitlines()
        place = f"{file}:{next(n for n, line in enumerate(lines, 1) if marked in line)}"
        self.refused_start(place, *expected)
        self.refused_start(place, *expected, arguments=["--config", str(file)])
        checked = programs.run_berth(self.build, "config", "check", str(file))
        self.assertEqual(checked.returncode, 1)
        for text in (place, *expected):
            self.assertIn(text, checked.stderr.decode())

    def test_unknown_key_names_the_nearest(self) -> None:
        self.rejected("[server]\nlog_kep = 5\n", "log_kep", "log_kep", "log_keep")

    def test_unknown_section_names_the_nearest(self) -> None:
        self.rejected("[memry]\nhost_budget = \"auto\"\n", "memry", "memory")

    def test_wrong_type_says_what_was_expected(self) -> None:
        self.rejected('[server]\nlog_keep = "five"\n', "log_keep", "log_keep", "expected")

    def test_value_out_of_range(self) -> None:
        self.rejected("[defaults]\nsequences = 0\n", "sequences", "sequences")

    def test_duration_without_a_unit(self) -> None:
        self.rejected('[server]\ndrain_timeout = "soon"\n', "drain_timeout", "drain_timeout", "duration")

    def test_syntax_error(self) -> None:
        self.rejected("[models\ndirs = []\n", "[models", "")

    def test_several_problems_are_told_at_once(self) -> None:
        file = self.workspace.config("[server]\nlog_kep = 5\nmax_body = true\n")
        said = self.refused_start("log_kep", "max_body")
        self.assertEqual(said.count(f"{file}:"), 2, said)

    def test_missing_file(self) -> None:
        missing = str(self.workspace.path / "no-such.toml")
        self.refused_start("no-such.toml", arguments=["--config", missing])
        checked = programs.run_berth(self.build, "config", "check", missing)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("no-such.toml", checked.stderr.decode())

    def test_wrong_command_line(self) -> None:
        self.refused_start("--no-such-option", arguments=["--no-such-option"])

    def test_valid_file_and_effective_values(self) -> None:
        file = self.workspace.config('[server]\ndrain_timeout = "7s"\n')
        checked = programs.run_berth(self.build, "config", "check", str(file))
        self.assertEqual(checked.returncode, 0, checked.stderr.decode())
        daemon = self.berthd().wait_listening()
        settings = {one["key"]: one for one in daemon.json("config", "show")["settings"]}
        self.assertIn("7s", settings["server.drain_timeout"]["value"])
        self.assertIn("berth.toml:", settings["server.drain_timeout"]["source"])
        self.assertNotIn("berth.toml:", settings["server.max_body"]["source"])
