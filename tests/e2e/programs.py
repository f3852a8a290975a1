"""Starts the real berthd of a build folder on directories of its own, and runs berth against it.

Everything that waits has a deadline, which is far beyond what a loaded machine needs; nothing waits
by sleeping.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Callable, Iterator

DEADLINE = 60.0  # seconds
TEST_MODEL = Path(__file__).resolve().parent.parent / "models" / "tinychat.gguf"


class Failed(AssertionError):
    """What was expected did not happen; the text says what was seen instead."""


class LineReader:
    """Collects the lines of a pipe on a thread of its own, so that the writer never blocks. The
    thread ends with the pipe."""

    def __init__(self, pipe) -> None:
        self._pipe = pipe
        self._lines: list[str] = []
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._pipe:
            with self._changed:
                self._lines.append(line.decode(errors="replace").rstrip("\n"))
                self._changed.notify_all()
        self._pipe.close()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def lines(self) -> list[str]:
        with self._changed:
            return list(self._lines)

    def wait_for(self, accept: Callable[[str], bool], what: str, deadline: float = DEADLINE,
                 start: int = 0) -> str:
        """The first line from number `start` on that is accepted."""
        end = time.monotonic() + deadline
        number = start
        with self._changed:
            while True:
                while number < len(self._lines):
                    if accept(self._lines[number]):
                        return self._lines[number]
                    number += 1
                remaining = end - time.monotonic()
                if self._closed or remaining <= 0:
                    why = "the output ended" if self._closed else f"not within {deadline:.0f} s"
                    raise Failed(f"{what}: {why}. Seen:\n" + "\n".join(self._lines[-40:]))
                self._changed.wait(remaining)

    def wait_closed(self, deadline: float = DEADLINE) -> list[str]:
        end = time.monotonic() + deadline
        with self._changed:
            while not self._closed:
                if not self._changed.wait(max(0.0, end - time.monotonic())) and not self._closed:
                    raise Failed(f"the output did not end within {deadline:.0f} s")
            return list(self._lines)


def wait_gone(pid: int, deadline: float = DEADLINE) -> float:
    """Waits until a process that need not be our child has ended. Returns the seconds it took."""
    start = time.monotonic()
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return 0.0
    try:
        if not select.select([handle], [], [], deadline)[0]:
            raise Failed(f"process {pid} ({command_line(pid)}) still lives after {deadline:.0f} s")
    finally:
        os.close(handle)
    return time.monotonic() - start


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def with_setting(text: str, section: str, line: str) -> str:
    """The configuration with a setting more, unless the text has its key already."""
    key = line.split("=")[0]
    if any(old.startswith(key) for old in text.splitlines()):
        return text
    header = f"[{section}]\n"
    if header in text:
        return text.replace(header, header + line + "\n", 1)
    return f"{text}\n{header}{line}\n"


class Workspace:
    """A directory of its own with a short path (a socket's path has room for 107 bytes), in the form
    that `berthd --demo` takes. Removed at the end."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="be-", dir="/tmp"))
        self.models = self.path / "models"
        self.models.mkdir()
        self.config("")

    def config(self, text: str) -> Path:
        """Writes berth.toml. Unless the text says otherwise, HTTP has port 0 and a worker one thread:
        ggml's threads spin, and tests share the machine with others."""
        file = self.path / "berth.toml"
        text = with_setting(text, "server", 'http = "127.0.0.1:0"')
        file.write_text(with_setting(text, "defaults", "threads = 1"))
        return file

    def system_config(self, text: str = "") -> Path:
        """A configuration as a service has it, for `berthd --config`, with everything in here."""
        file = self.path / "service.toml"
        for line in ('log_dir = "log"', 'run_dir = "run"', 'state_dir = "state"',
                     f'grpc = ["unix:{self.path}/run/berth.sock"]', 'http = "127.0.0.1:0"'):
            text = with_setting(text, "server", line)
        text = with_setting(text, "models", 'dirs = ["models"]')
        file.write_text(with_setting(text, "defaults", "threads = 1"))
        return file

    def add_model(self, name: str = "demo", file: Path = TEST_MODEL) -> Path:
        """A model of this name; the trained tiny chat model unless another file is given. Appears at
        once and whole."""
        target = self.models / f"{name}.gguf"
        partial = self.path / f"{name}.partial"
        shutil.copyfile(file, partial)
        partial.rename(target)
        return target

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class Berthd:
    """A running berthd. `arguments` replaces `--demo DIR`."""

    def __init__(self, build: Path, workspace: Workspace, arguments: list[str] | None = None,
                 preexec: Callable[[], None] | None = None) -> None:
        self.build = build
        self.workspace = workspace
        command = [str(build / "bin" / "berthd"),
                   *(arguments or ["--demo", str(workspace.path)]), "--log-format", "json"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, preexec_fn=preexec)
        self.output = LineReader(self.process.stdout)
        self.errors = LineReader(self.process.stderr)
        self.http = ""
        self.grpc = ""

    def wait_listening(self) -> "Berthd":
        try:
            event = self.wait_event("server.listening")
        except Failed as problem:
            errors = "\n".join(self.errors.lines()[-20:])
            raise Failed(f"{problem}\nstandard error:\n{errors}") from None
        self.http = event["http"]
        self.grpc = next(address for address in event["grpc"].replace(",", " ").split()
                         if address.startswith("unix:"))
        return self

    def wait_event(self, name: str, deadline: float = DEADLINE, start: int = 0, **fields) -> dict:
        """The first event of that name, and with these fields, from output line `start` on."""

        def accept(line: str) -> bool:
            event = parse_event(line)
            return event.get("event") == name and all(
                event.get(key) == value for key, value in fields.items())

        return parse_event(self.output.wait_for(accept, f"event {name} {fields or ''}", deadline,
                                                start))

    def events(self, name: str) -> list[dict]:
        return [event for event in map(parse_event, self.output.lines())
                if event.get("event") == name]

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of one HTTP GET."""
        request = urllib.request.Request(f"http://{self.http}{path}")
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode(errors="replace")

    def berth(self, *arguments: str | bytes, deadline: float = DEADLINE,
              input_bytes: bytes | None = None) -> subprocess.CompletedProcess:
        """Runs `berth` against this daemon to its end."""
        return run_berth(self.build, *arguments, endpoint=self.grpc, deadline=deadline,
                         input_bytes=input_bytes)

    def start_berth(self, *arguments: str) -> "RunningBerth":
        return RunningBerth(self.build, self.grpc, *arguments)

    def json(self, *arguments: str) -> dict:
        """The JSON document of a reading verb; the verb must succeed."""
        done = self.berth(*arguments, "--json")
        if done.returncode != 0:
            raise Failed(f"berth {' '.join(arguments)} --json: exit {done.returncode}: "
                         f"{done.stderr.decode(errors='replace')}")
        return json.loads(done.stdout)

    def instance(self, model: str = "demo") -> dict:
        """The instance of a model, as `berth ps --json` shows it."""
        instances = self.json("ps").get("instances", [])
        found = [one for one in instances if one["model"] == model]
        if not found:
            raise Failed(f"berth ps shows no instance of {model}: {instances}")
        return found[0]

    def stop(self) -> int:
        """Ends it in good order if it still runs. Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(DEADLINE)
            raise Failed(f"berthd did not stop within {DEADLINE:.0f} s of SIGTERM") from None


class RunningBerth:
    """A `berth` that runs beside the test; its output is read as it comes."""

    def __init__(self, build: Path, endpoint: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [str(build / "bin" / "berth"), *arguments, "--endpoint", endpoint],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=clean_environment())
        self.output = LineReader(self.process.stdout)
        self.errors = LineReader(self.process.stderr)

    def wait(self, deadline: float = DEADLINE) -> int:
        try:
            status = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(DEADLINE)
            raise Failed(f"berth did not end within {deadline:.0f} s") from None
        self.output.wait_closed()
        self.errors.wait_closed()
        return status

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE)


def clean_environment() -> dict[str, str]:
    """The environment without what would change where berth looks or how it prints."""
    return {key: value for key, value in os.environ.items() if not key.startswith("BERTH_")}


def run_berth(build: Path, *arguments: str | bytes, endpoint: str | None = None,
              deadline: float = DEADLINE,
              input_bytes: bytes | None = None) -> subprocess.CompletedProcess:
    command = [str(build / "bin" / "berth"), *arguments]
    if endpoint:
        command += ["--endpoint", endpoint]
    given = {"input": input_bytes} if input_bytes is not None else {"stdin": subprocess.DEVNULL}
    try:
        return subprocess.run(command, capture_output=True, timeout=deadline, check=False,
                              env=clean_environment(), **given)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(map(str, arguments))} did not end within {deadline:.0f} s") from None


def parse_event(line: str) -> dict:
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return event if isinstance(event, dict) else {}


def descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield int(child)
            yield from descendants(int(child))
