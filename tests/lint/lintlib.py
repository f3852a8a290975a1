"""What the checks of tests/lint share: which files there are, how a hit is shown, how a self-test plants one.

A check is a program without arguments that exits 0 when it finds nothing, 1 when it found something
(one line per hit: FILE:LINE: what is wrong: what to do), 2 when it could not work. With --self-test
it proves on planted files that it finds what it is for, and stays quiet where nothing is wrong.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterable, NamedTuple

CXX_SUFFIXES = (".h", ".cc", ".cpp")
SKIPPED_FOLDERS = {".git", "build", "node_modules", "__pycache__"}


class Hit(NamedTuple):
    path: str  # relative to the root
    line: int  # from 1; 0: the file as a whole
    what: str
    todo: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.what}: {self.todo}"


class CannotWork(Exception):
    """The check lacks a tool or a file; the text says which, and where it comes from."""


def tracked_files(root: Path) -> list[str]:
    """Every file of the project relative to root, sorted: tracked ones, and new ones that git does
    not ignore. In a tree without git, all files outside build folders."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
        return sorted({name for name in names if name and (root / name).is_file()})
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(found)


def cxx_files(root: Path) -> list[str]:
    return [name for name in tracked_files(root) if name.endswith(CXX_SUFFIXES)]


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(path: Path) -> list[tuple[int, str, str]]:
    """(line, '<' or '"', name) of every #include of a file."""
    out = []
    for number, line in enumerate(read_lines(path), 1):
        match = INCLUDE.match(line)
        if match:
            out.append((number, match.group(1), match.group(2)))
    return out


def find_tool(*names: str) -> str:
    """The first of these programs that is installed."""
    for name in names:
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            if os.access(os.path.join(folder, name), os.X_OK):
                return name
    raise CannotWork(f"none of {', '.join(names)} is installed; deploy/setup --dev installs them")


class CompileCommand(NamedTuple):
    file: str  # absolute
    directory: str
    arguments: list[str]

    def front_end_flags(self) -> list[str]:
        """The flags that decide what the source means, for a clang that was not its compiler."""
        kept = []
        takes_value = ("-I", "-isystem", "-D", "-U", "-include", "-iquote")
        arguments = iter(self.arguments)
        for argument in arguments:
            if argument in takes_value:
                kept += [argument, next(arguments)]
            elif argument.startswith(("-I", "-D", "-U", "-std=", "-isystem", "-fsanitize=")):
                kept.append(argument)
        return kept


def compile_commands(build: Path) -> list[CompileCommand]:
    database = build / "compile_commands.json"
    if not database.is_file():
        raise CannotWork(f"{database} is missing; configure a build first (cmake --preset dev) "
                         "and name its folder with --build")
    commands = []
    for entry in json.loads(database.read_text()):
        file = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        commands.append(CompileCommand(file, entry["directory"], shlex.split(entry["command"])))
    return commands


class Arguments(NamedTuple):
    root: Path
    build: Path


def main(description: str, check: Callable[[Arguments], Iterable[Hit]],
         self_test: Callable[[], None]) -> None:
    """Runs a check as a program. Never returns."""
    parser = argparse.ArgumentParser(description=description)
    default_root = Path(__file__).resolve().parent.parent.parent
    parser.add_argument("--root", type=Path, default=default_root, help="the tree to look at")
    parser.add_argument("--build", type=Path, default=default_root / "build" / "dev",
                        help="a configured build folder, for the checks that compile")
    parser.add_argument("--self-test", action="store_true", help="check the check")
    arguments = parser.parse_args()
    try:
        if arguments.self_test:
            self_test()
            print("self-test passed")
            sys.exit(0)
        count = 0
        for hit in check(Arguments(arguments.root.resolve(), arguments.build.resolve())):
            print(hit, flush=True)
            count += 1
    except CannotWork as problem:
        print(f"{parser.prog}: {problem}", file=sys.stderr)
        sys.exit(2)
    print(f"{count} hit(s)" if count else "clean")
    sys.exit(1 if count else 0)


def planted(files: dict[str, str], check: Callable[[Path], Iterable[Hit]]) -> list[Hit]:
    """What a check finds in a tree that consists of these files."""
    with tempfile.TemporaryDirectory(prefix="lint-") as folder:
        root = Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(check(root))


def expect_hits(hits: list[Hit], expected: Iterable[tuple[str, int, str]]) -> None:
    """The hits are exactly these: (path, line, a part of `what`)."""
    missing = list(expected)
    surplus = []
    for hit in hits:
        match = next((one for one in missing
                      if one[0] == hit.path and one[1] == hit.line and one[2] in hit.what), None)
        if match:
            missing.remove(match)
        else:
            surplus.append(hit)
    for one in missing:
        print(f"self-test: not found: {one}", file=sys.stderr)
    for hit in surplus:
        print(f"self-test: found, but should not be: {hit}", file=sys.stderr)
    if missing or surplus:
        sys.exit(1)
