"""The house rules: imports point up the list of packages, in no circle, and modules and functions stay short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeVar

import pytest

from tests.simulation import PROJECT

# A package may import those before it. CONTRIBUTING.md says what each is for.
PACKAGES = (
    "common", "worker", "profiles", "engines", "advice", "checks", "stats", "bench", "analysis", "report", "tuning",
    "cluster", "cli",
)  # fmt: skip
# What runs code that stands in data: pickles, in files or from other ranks, and marshalled code.
UNPICKLE = {
    "pickle", "marshal", "shelve", "dill", "cloudpickle", "recv_object_list", "broadcast_object_list", "gather_object",
    "all_gather_object", "scatter_object_list",
}  # fmt: skip
# What reaches a terminal past the writer of envkit.common.output, which is in the place of the standard streams.
PAST_WRITER = {
    "buffer", "__stdout__", "__stderr__", "ctermid", "ttyname", "Console", "rich_proxied_file", "openpty",
    "terminal_of",
}  # fmt: skip
WRITERS = ("envkit.common.output", "envkit.common.console")
# What runs without the command line, and so without its writer: a worker, whose streams are pipes, ...
WITHOUT_WRITER = ("envkit.worker", "envkit.engines.start")
# ... and the check of a notebook, which prints messages alone.
ONLY_TEXT = ("envkit", "envkit.checks.this_process")
MOST_LINES, MOST_LINES_OF_A_FUNCTION, MOST_AT_THE_ROOT = 500, 60, 5
Node = TypeVar("Node", bound=ast.AST)


@cache
def modules() -> dict[str, Path]:
    """All modules of the kit by their dotted names."""
    paths = (PROJECT / "runner").rglob("*.py")
    named = {".".join(path.relative_to(PROJECT / "runner").with_suffix("").parts): path for path in paths}
    return {name.removesuffix(".__init__"): path for name, path in named.items()}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's tree. To walk the trees anew for each rule would take most of the tests' time."""
    return tuple(ast.walk(tree(module)))


@cache
def of_type(module: str, kind: type[Node]) -> tuple[Node, ...]:
    """Return all nodes of one type in a module, in the order of ``nodes``."""
    return tuple(node for node in nodes(module) if isinstance(node, kind))


def dotted(node: ast.AST) -> str:
    """Return a name with its attributes, as ``os.path.join``. Nothing stands for any other expression in it.

    ``ast.unparse`` would say the same, and takes several times as long as all else here.
    """
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


@cache
def imported(module: str) -> tuple[str, ...]:
    """The kit's modules that one imports, anywhere in it; of a package's parts those that are modules."""
    plain = [alias.name for node in of_type(module, ast.Import) for alias in node.names if alias.name in modules()]
    parts = [
        (str(node.module), f"{node.module}.{alias.name}")
        for node in of_type(module, ast.ImportFrom) if node.module in modules()
        for alias in node.names
    ]  # fmt: skip
    return (*plain, *(part if part in modules() else whole for whole, part in parts))


def package(module: str) -> str | None:
    """The package that a module is in; None for one at the root."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in PACKAGES else None


def test_every_module_is_in_a_package_but_for_a_few():
    outside = [name for name in modules() if package(name) is None]
    assert len(outside) <= MOST_AT_THE_ROOT, outside


@pytest.mark.parametrize("name", PACKAGES)
def test_imports_point_up_the_list(name):
    allowed = {"worker"} if name == "worker" else {*PACKAGES[: PACKAGES.index(name) + 1]}
    wrong = [
        f"{module} imports {other}"
        for module in modules() if package(module) == name
        for other in imported(module) if package(other) not in {None, *allowed}
    ]  # fmt: skip
    assert not wrong


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: {other for other in imported(module) if other != module} for module in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_no_module_is_too_long():
    lines = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert not {name: number for name, number in lines.items() if number > MOST_LINES}


def test_no_function_is_too_long():
    functions = (
        (f"{module}.{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for module in modules()
        for node in of_type(module, ast.FunctionDef)
    )
    assert not {name: lines for name, lines in functions if lines > MOST_LINES_OF_A_FUNCTION}


def test_nothing_is_unpickled():
    """Whoever can write a file or reach a port could run code by it."""
    found = []
    for module in modules():
        imports = (*of_type(module, ast.Import), *of_type(module, ast.ImportFrom))
        names = [alias.name for node in imports for alias in node.names]
        names += [node.attr for node in of_type(module, ast.Attribute)]
        found += [f"{module}: {name}" for name in names if name.partition(".")[0] in UNPICKLE]
    assert not found


# --- files from outside ---

# Who opens a file without ``envkit.common.files``, which reads what somebody else may have written, and why they may.
OPENS = {
    "the one writer": (
        "common.atomic._replace", "common.atomic._set_mode", "common.atomic._stream", "common.atomic.open_file",
        "common.destination._Walk.__init__", "common.destination._Walk._enter", "common.destination._Walk._follow",
    ),
    "the one reader, and that of what processes of a command left": (
        "common.files.open_descriptor", "common.files._followed", "worker.left._content",
    ),
    "the user's key, which has stricter rules": ("common.user_key._read", "common.user_key._make"),
    "the kit's own files": (
        "advice.expected.fitted", "analysis.baseline_document._validator",
        "cli.commands.completion.bash", "cli.commands.completion.fish", "cli.commands.completion.zsh",
        "cluster.slurm.script._part",
        "common.schema.validate", "profiles.formats.shells", "worker.measure.reference_kernel.digest",
        "worker.workloads.digests.of_code",
    ),
    "what the worker's own command line names": ("worker.request.read",),
    "the kernel's files": (
        "bench.neighbours.processes", "common.machine_lock._holder", "bench.pace.free_bytes",
        "checks.doctor.running_process._runtimes",
        "checks.doctor.running_process._settings", "checks.process_scan.look", "checks.steady_process.look",
        "checks.steady_process._require", "engines.enroot._require_namespaces", "engines.local._is_own",
        "engines.local.LocalEngine.for_process", "engines.owner.boot_id", "engines.owner.stat_fields",
        "worker.child._children", "worker.evidence.limits.probe", "worker.evidence.symbols._is_program",
        "worker.evidence.symbols.mapped_files", "worker.evidence.cpu_use.thread_masks",
        "worker.evidence.torch_build._asks_for_huge_pages", "worker.evidence_hook.optimizer_steps._delay_s",
        "worker.evidence_hook.sitecustomize._AtTorch.find_spec", "worker.evidence_hook.sitecustomize._watch",
        "worker.initial_environment.block_of", "worker.initial_environment.started_variables",
        "worker.measure.helpers._add", "worker.measure.helpers._stat", "worker.scratch._has_mounts",
        "worker.user_command.lookout.Lookout._starter",
        "worker.user_command.lookout.Lookout.look", "worker.user_command.lost_hook._numbers",
        "worker.user_command.other_process.look", "worker.user_command.process_tree.look",
        "worker.user_command.process_tree.parent", "worker.workloads.loader_epochs.started_by",
    ),
    "programs and libraries that are run anyway, and data that was checked against its digest": (
        "engines.interpreter._first_lines", "worker.evidence.compiler._settings", "worker.evidence.running.exporting",
        "worker.evidence.symbols.imports", "worker.fashion_mnist._mapped", "worker.gpus.torch_cuda",
        "worker.image.conda_packages", "worker.libraries._version_in", "worker.libraries.locate",
    ),
    "what the user's own command line and variables name, seen to be a file before": (
        "worker.evidence.nccl.probe", "worker.readings.text_of", "worker.user_command.files._content",
        "worker.user_command.working_copy._is_record",
    ),
    "written, locked or waited for, and not read": (
        "bench.record._flush_names", "cli._drop", "cli._open_stderr",

        "common.machine_lock.machine_lock",
        "worker.evidence_hook.optimizer_steps.Steps._agree", "worker.evidence_hook.optimizer_steps.Steps._leave",
        "worker.evidence_hook.optimizer_steps.Steps._mark", "worker.evidence_hook.sitecustomize._watch.mark",
        "worker.evidence_hook.sitecustomize._note_libraries.note",
        "worker.instances._started", "worker.measure.meeting.Meeting._sign", "worker.measure.meeting.Meeting.begin",
        "worker.scratch._open",
        "worker.scratch._open_inner", "worker.measure.turn.own_stdin",
    ),
}  # fmt: skip
OPENING = {"open", "read_text", "read_bytes"}


def opening(node: ast.AST, name: str) -> Iterator[str]:
    """The functions in a module that open a file, by their dotted names."""
    for inner in ast.iter_child_nodes(node):
        is_scope = isinstance(inner, ast.FunctionDef | ast.ClassDef)
        if isinstance(inner, ast.Call):
            called = inner.func
            found = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if found in OPENING:
                yield name
        yield from opening(inner, f"{name}.{inner.name}" if is_scope else name)


def test_one_reader_opens_all_files_from_outside():
    """Whoever else opens files is listed with the reason; to read one from outside, call ``envkit.common.files``."""
    found = {one.removeprefix("envkit.") for module in modules() for one in opening(tree(module), module)}
    listed = {name for names in OPENS.values() for name in names}
    assert found - listed == set(), "use envkit.common.files"
    assert listed - found == set(), "gone: take it off the list"


# What writes to a file, makes a folder or gives something a name. `envkit.common.atomic` alone does, but for these.
WRITING_CALLS = {
    "write_text", "write_bytes", "mkdir", "makedirs", "touch", "rename", "symlink_to", "hardlink_to", "mkfifo", "mknod",
    "mkstemp", "NamedTemporaryFile", "copyfile", "copytree", "copy2", "move", "link", "symlink",
}  # fmt: skip
OPENED_TO_WRITE = {"O_CREAT", "O_WRONLY", "O_RDWR"}
WRITING_MODES = set("wax+")
OTHER_WRITERS = {
    "envkit.common.machine_lock": "the lock of all users, opened without following a link",
    "envkit.common.user_key": "the key, made under a random name in a folder of the user's alone",
    "envkit.common.schema": "notes in the user's cache",
    "envkit.profiles.preload_links": "links in the user's cache, if it is the user's alone",
    "envkit.engines.process": "notes in a folder of the user's alone, which is checked",
    "envkit.cli": "/dev/null",
    "envkit.cli.execution.on_machine": "in a folder that the process has made",
    "envkit.bench.dataset": "downloads, in a folder that the process has made",
    "envkit.tuning.journal": "the lock beside a journal: a link that nobody follows",
}


def _writes(node: ast.AST) -> str | None:
    """Return the name of what a node writes with, if it does."""
    if isinstance(node, ast.Attribute) and node.attr in OPENED_TO_WRITE:
        return node.attr
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in {"replace"} and isinstance(node.func, ast.Attribute) and len(node.args) == 1 and not node.keywords:
        return "replace"  # a Path: a text's takes two, and a dataclass's its object and names
    if name == "replace" and isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "os":
        return "os.replace"
    if name in {"open", "fdopen"}:
        modes = [
            one.value for one in [*node.args, *(key.value for key in node.keywords)] if isinstance(one, ast.Constant)
        ]
        writing = any(isinstance(mode, str) and len(mode) <= 3 and WRITING_MODES & {*mode} for mode in modes)
        return name if writing else None
    return name if name in WRITING_CALLS else None


def _outside_of(node: ast.AST, functions: set[str]) -> Iterator[ast.AST]:
    """Yield all nodes but those of calls of ``functions``, whose arguments are flags."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in functions:
        return
    yield node
    for inner in ast.iter_child_nodes(node):
        yield from _outside_of(inner, functions)


def test_nothing_else_writes_files():
    """Workers write in folders that the process has made, and are not looked at here."""
    ours = {"open_file", "open_descriptor"}
    found = {
        module: {name for node in _outside_of(tree(module), ours) if (name := _writes(node))}
        for module in modules()
        if package(module) != "worker" and module not in {"envkit.common.atomic", "envkit.common.destination"}
    }
    assert {module: names for module, names in found.items() if names and module not in OTHER_WRITERS} == {}
    assert {module for module in OTHER_WRITERS if not found[module]} == set()


def calls(module: str) -> Iterator[tuple[str, ast.Call]]:
    """What a module calls, by the dotted name as it is written."""
    for node in of_type(module, ast.Call):
        yield dotted(node.func), node


def test_only_the_writer_reaches_a_terminal():
    """All else prints to the standard streams, for which the command line puts the writer."""
    found = []
    for module in modules():
        if module in WRITERS:
            continue
        past = [node for node in of_type(module, ast.Attribute) if node.attr in PAST_WRITER]
        found += [f"{module}:{node.lineno}: {node.attr}" for node in past]
        for name, call in calls(module):
            writes = name in ("os.write", "os.writev", "os.fdopen", "open")
            to_stream = writes and ast.unparse(call.args[0]) in ("1", "2")
            named = any(isinstance(one, ast.Constant) and str(one.value).startswith(("/dev/tty", "/dev/std", "/dev/fd"))
                        for one in call.args)  # fmt: skip
            if (to_stream and not module.startswith(WITHOUT_WRITER)) or named or name in ("Console", "rich.print"):
                found.append(f"{module}:{call.lineno}: {name}")
    assert not found


def test_each_program_that_prints_has_the_writer():
    """A module that is started as a program, and is not the worker, puts it there; the command line puts its own."""
    programs = {name for name, path in modules().items() if "if __name__ ==" in path.read_text()}
    programs = {name for name in programs if not name.startswith(WITHOUT_WRITER)}
    assert programs == {"envkit.__main__", "envkit.cli.slurm_node"}
    for name in ("envkit.cli", "envkit.cli.slurm_node"):
        main = next(one for one in tree(name).body if isinstance(one, ast.FunctionDef) and one.name == "main")
        assert "output.guard()" in ast.unparse(main), name


@pytest.mark.parametrize("module", ONLY_TEXT)
def test_what_is_printed_into_another_program_is_text_of_messages(module):
    """The streams there are the user's: each thing that is printed passes envkit.rendering."""
    for name, call in calls(module):
        if name == "print":
            for printed in call.args:
                said = ast.unparse(printed)
                assert re.search(r"\btext(_of)?\(|\*of_profile", said), said
