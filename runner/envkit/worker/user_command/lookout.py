"""Look out for processes of a command that train where the evidence hook can't see it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.worker.initial_environment import started_with
from envkit.worker.messages.hook import WithoutHook
from envkit.worker.messages.user_command import StepsHidden
from envkit.worker.user_command import lost_hook, process_tree
from envkit.worker.user_command.metric import NotMeasured
from envkit.worker.user_command.optimizer_steps import StepRequest, require_first_step

# How often processes are looked at until an optimizer has stepped, in seconds.
LOOK_S = 0.5
# A process that has used torch without the hook for LOST_S trains if it has had LOST_CPU_S since: to import torch takes
# less, and scripts ask for its version. One that computes on a GPU, or runs a few words (-c), trains after LONG_S.
LOST_S, LOST_CPU_S, LONG_S = 3.0, 2.5, 15.0


class Lookout:
    """Remember why a process of this one's child has no hook (``reason``), from the looks that are taken.

    ``argv`` is the child's command line. With a ``step_request``, a training that can't be timed is reported at
    once: launchers, loaders of data and short helpers are none.
    """

    def __init__(self, folder: Path, argv: Sequence[str], step_request: StepRequest | None) -> None:
        self._folder, self._command = folder, " ".join(argv)
        self._asked, self._begun_s = step_request, time.perf_counter()
        self.is_waiting = step_request is not None
        self.reason: WithoutHook | None = None
        self._next_s = 0.0
        self._lost: dict[int, tuple[float, process_tree.Look, bool]] = {}  # since when, and whether it runs a few words

    def wait(self) -> None:
        """Look, if it is time, until a step was taken. Raises NotMeasured where none will be seen."""
        now = time.perf_counter()
        if not self.is_waiting or now < self._next_s:
            return
        self._next_s = now + LOOK_S
        if any(self._folder.glob("*.stepped")):
            self.is_waiting = False
            return
        assert self._asked is not None, "steps are waited for"
        now_look = self.look()
        for pid, (since_s, first, few_words) in self._lost.items():
            spent_s = _cpu_s({pid}, first.processes, now_look.processes)
            is_busy = now - since_s >= LOST_S and spent_s >= LOST_CPU_S and not few_words
            if (is_busy or now - since_s >= LONG_S) and self._trains_most(first, now_look):
                assert self.reason is not None, "a process was lost"
                raise NotMeasured(StepsHidden(self.reason))
        require_first_step(self._asked, self._folder, now - self._begun_s)

    def look(self) -> process_tree.Look:
        """Look at all processes below this one now."""
        snapshot = process_tree.look(os.getpid())
        lost = {}
        for pid in sorted(snapshot.processes.keys() - {os.getpid()}):
            try:
                lines = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines()
                mapped = [columns[5] for line in lines if len(columns := line.split(maxsplit=5)) == 6]
                if not lost_hook.is_lost(pid, mapped, self._folder):
                    continue
                block = Path(f"/proc/{pid}/environ").read_bytes()
                argv = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            except OSError:
                continue  # it has ended, or is another user's
            if not block and not argv[0]:
                continue  # it is about to end
            variables = started_with(block.decode(errors="surrogateescape"))
            lost[pid] = self._lost.get(pid, (snapshot.at_s, snapshot, "-c" in argv))
            if pid not in self._lost:
                self.reason = lost_hook.why(pid, argv, variables, self._starter(pid))
        self._lost = lost
        return snapshot

    def _starter(self, pid: int) -> str:
        """The command line of the process that started it; the command's own where that is this worker."""
        parent = process_tree.parent(pid)
        if parent is None or parent == os.getpid():
            return self._command
        try:
            return Path(f"/proc/{parent}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()
        except OSError:
            return self._command

    def _trains_most(self, before: process_tree.Look, after: process_tree.Look) -> bool:
        """Return whether those without the hook used more CPU time than those that have imported torch with it."""
        hooked = {int(path.stem) for path in self._folder.glob("*.torch") if path.stem.isdigit()}
        with_hook = _cpu_s(hooked, before.processes, after.processes)
        return not hooked or _cpu_s(self._lost, before.processes, after.processes) > with_hook


def _cpu_s(
    pids: set[int] | Mapping[int, object], before: Mapping[int, process_tree.Usage],
    after: Mapping[int, process_tree.Usage],
) -> float:  # fmt: skip
    none = process_tree.Usage()
    pairs = ((before.get(pid, none), after[pid]) for pid in pids if pid in after)
    return sum(now.user_s + now.system_s - earlier.user_s - earlier.system_s for earlier, now in pairs)
