"""What to do next, in sentences: per profile or image, or of several workloads for all of them together."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from pathlib import Path

from envkit.analysis import ranking
from envkit.analysis.load import CODES, Load
from envkit.analysis.noise import KINDS
from envkit.analysis.summary import Comparison, Summary
from envkit.bench import user_command
from envkit.bench.calibration import is_calibration
from envkit.bench.plan import Arm, Plan
from envkit.engines import ENGINES
from envkit.engines.container import LIMITS
from envkit.profiles import profile
from envkit.report import grid, multi_workload
from envkit.report.ablation_wording import costs_in_profile
from envkit.report.parts import Row
from envkit.report.wording import learns_otherwise, other_workload
from envkit.stats.contribution import NO_DIFFERENCE, Contribution
from envkit.stats.interval import ERROR_RATE, Speedup
from envkit.stats.power import blocks_needed
from envkit.stats.verdict import Verdict
from envkit.worker.gpus import CHOOSING
from envkit.worker.modes import CUDA


def rows(summary: Summary) -> list[Row]:
    """Each sentence once. Of many profiles the best has one, and each with which something is wrong."""
    if summary.plan.across:
        texts = _on_several_workloads(summary)
    elif summary.plan.compares_images:
        texts = [text for one in summary.comparisons if (text := _of_image(summary, one))]
    elif summary.plan.ablated:
        texts = _of_settings(summary)
    else:
        texts = _per_profile(summary)
    return [Row("next", text) for text in dict.fromkeys(texts)]


def _per_profile(summary: Summary) -> list[str]:
    if chosen := _of_a_search(summary):
        return [chosen]
    texts, best_told = list[str](), False
    ranked = ranking.ranked(summary)
    if ranking.many(summary):  # the noisiest of them is the likeliest to be at the top without being known to be faster
        ranked = sorted(ranked, key=lambda one: not is_worth_it(one))
    for one in ranked:
        arm = summary.plan.arm(one.arm)
        wrong = one.verdict == Verdict.NOT_IN_EFFECT or learns_otherwise(summary, one)
        if ranking.many(summary) and best_told and not wrong:
            continue
        if is_calibration(summary.plan):
            text = _after_calibration(one)
        elif other_workload(summary, arm):
            text = None  # a change of the training's code, which no profile makes
        elif learns_otherwise(summary, one):
            text = _find_out(arm)
        else:
            text = too_much_interference(one) or _at_once(summary, arm) or _next(summary, one, arm)
        if text:
            texts.append(text)
            best_told = best_told or not wrong
    return texts


def _of_a_search(summary: Summary) -> str | None:
    """What to do after a search whose confirmation found both profiles faster: use the one that the search wrote.

    The search compared these two; a report compares both with the baseline alone.
    """
    if not summary.plan.more_comparisons or not all(
        is_worth_it(one) and not learns_otherwise(summary, one) and not too_much_interference(one)
        for one in summary.comparisons
    ):
        return None
    shipped, tuned = summary.plan.compared
    which = f"{shipped.name}, unless {tuned.name} was surely faster than that too"
    return f"use what the search wrote, which is {which}: {_exec(summary, tuned, _torchrun(summary, tuned))}"


def _of_settings(summary: Summary) -> list[str]:
    """What to use of a profile that was taken apart: less of it, where less of it is as good or better."""
    plan = summary.plan
    whole = summary.comparisons[0]
    texts = [_find_out(plan.arm(one.arm)) for one in summary.comparisons if learns_otherwise(summary, one)]
    wrong = {one.arm for one in summary.comparisons if learns_otherwise(summary, one)}
    calmer = too_much_interference(whole)
    if whole.arm in wrong or calmer or not is_worth_it(whole):
        last = None if whole.arm in wrong else calmer or _next(summary, whole, plan.whole)
        return [*texts, *([last] if last else [])]
    costly = [one.setting for one in summary.ablation if costs_in_profile(one)]
    matter = [one for one in summary.ablation if one.contribution not in NO_DIFFERENCE]
    enough = [one.setting.alone for one in matter if one.contribution == Contribution.ALONE]
    chosen = [one.without for one in costly] if len(costly) == 1 else enough if len(matter) == 1 else []
    arm = plan.arm(next((name for name in chosen if name is not None and name not in wrong), whole.arm))
    texts.append(f"use {arm.profile}: {_exec(summary, arm)}")
    if len(costly) > 1:
        names = ", ".join(one.setting for one in costly)
        texts.append(f"measure a copy of {whole.arm} without all that costs time in it ({names})")
    return texts


def is_worth_it(one: Comparison) -> bool:
    """Whether to recommend it for its speed: it is faster by more than the margin, and not beside a load alone."""
    large = one.speedup is not None and not one.speedup.within_margin
    return one.verdict == Verdict.FASTER and large and one.load is None


def _of_image(summary: Summary, one: Comparison) -> str | None:
    arm = summary.plan.arm(one.arm)
    reference = summary.plan.reference_of(arm)
    there = _there(summary, arm)
    if one.verdict == Verdict.NOT_IN_EFFECT:
        return f"find out why: envkit doctor {there}, and the same in {reference.image}"
    if learns_otherwise(summary, one):
        return f"find out why the losses in {arm.name} differ, before you use it"
    if calmer := too_much_interference(one):
        return calmer
    if is_worth_it(one):
        return f"use {arm.name}: {_exec(summary, arm)}"
    if one.verdict == Verdict.SLOWER and one.speedup is not None and not one.speedup.within_margin:
        return f"stay with {reference.name}: {arm.name} is slower here"
    return _next(summary, one, arm)


def fallback(summary: Summary, folder: str) -> str:
    """What to do where there is nothing else to say."""
    if summary.failures:
        command = "loader-grid" if grid.is_grid(summary.plan) else "bench"
        on = f"envkit {command} --resume {shlex.quote(folder)}"
        return f"Fix what the failed worker says of itself, then go on: {on}"
    if summary.plan.until and summary.plan.one_run_each:
        return "For an interval and a verdict, add --blocks 8."
    if summary.plan.one_run_each:
        return "For an interval and a verdict, measure the same without --full, or add --blocks 6."
    return "Measure a profile for long enough, with a larger --budget: envkit bench PROFILE"


def _on_several_workloads(summary: Summary) -> list[str]:
    """What is wrong with profiles, which to use, and how long it takes to know more."""
    of_profile = {arm.profile: arm for arm in summary.plan.compared}
    texts, wrong = [], set()
    for one in summary.comparisons:
        arm = summary.plan.arm(one.arm)
        if one.verdict == Verdict.NOT_IN_EFFECT:
            texts.append(f"find out why {one.arm} was not in effect: envkit doctor {_there(summary, arm)}")
        elif learns_otherwise(summary, one):
            wrong.add(arm.profile)
            texts.append(_find_out(arm))
    loaded = [one.load for one in summary.comparisons if one.load]
    texts += [quieter(loaded[0])] if loaded else []
    winners = [name for names in multi_workload.winners(summary).values() for name in names]
    everywhere = multi_workload.everywhere(summary)
    best, fast = ([name for name in names if name not in wrong] for names in (everywhere, winners))
    if best:
        arm = of_profile[best[0]]
        texts.append(f"use {best[0]}, which is faster on all of these: {_exec(summary, arm)}")
    elif fast:
        arm = of_profile[fast[0]]
        device = f" --device {CUDA}" if gpus(summary.plan, arm.engine) else ""
        own = f"envkit bench {_there(summary, arm)}{device} -- python train.py"
        texts.append(f"measure your own training before you choose: what wins depends on it: {own}")
    unknown = [
        (one.arm, one.speedup, one.deviation)
        for one in summary.comparisons
        if one.verdict == Verdict.NOT_FOUND and one.deviation and one.speedup
    ]
    if unknown:  # the noisiest decides
        name, found, deviation = max(unknown, key=lambda one: _needed(summary, one[2], one[1].blocks))
        texts.append(f"for {name}, {_longer(summary, found, deviation)}")
    return texts


def _at_once(summary: Summary, arm: Arm) -> str | None:
    """Whether to train several at once, where that was measured and is known, and how."""
    one = next((one for one in summary.instances if one.arm == arm.name), None)
    over = [found for found in (one.over_one_process, one.over_reference) if found] if one else []
    if not over or over[-1].verdict == Verdict.SLOWER:  # then the baseline is better than any number under the profile
        return None
    beside = over[0]
    if beside.verdict not in (Verdict.FASTER, Verdict.SLOWER) or beside.within_margin:
        return None
    if beside.verdict == Verdict.SLOWER:
        return f"train one after the other under {arm.profile}: {arm.instances} at once do less in the same time"
    return f"train {arm.instances} at once, each on CPUs of its own: taskset -c CPUS {_exec(summary, arm)}"


def _next(summary: Summary, comparison: Comparison, arm: Arm) -> str | None:
    there, reference = _there(summary, arm), summary.plan.reference_of(arm).name
    if comparison.speedup and comparison.speedup.within_margin:
        return f"choose {reference} or {arm.name} for other reasons than speed"
    if comparison.verdict == Verdict.FASTER:
        use, runs = arm.profile, arm
        if summary.plan.ranks_of(arm) > 1 and arm.ranks is None:  # they were asked for, and are not the profile's own
            each = summary.plan.parts_of(arm)
            name = f"{arm.profile}-{each}"
            runs = replace(arm, profile=name)
            use += f", copied to {name}.yaml with 'name: {name}' and 'ranks: {each}'"
        return f"use {use}: {_exec(summary, runs, _torchrun(summary, arm))}"
    if comparison.verdict == Verdict.SLOWER:
        return f"leave {arm.name} alone here: {reference} is faster"
    if comparison.verdict == Verdict.NOT_FOUND and comparison.deviation and comparison.speedup:
        return _longer(summary, comparison.speedup, comparison.deviation)
    longer = f"train longer, with more --epochs than {summary.plan.epochs}, or to a nearer target with --until"
    without = {Verdict.NOT_IN_EFFECT: f"find out why: envkit doctor {there}", Verdict.NOT_REACHED: longer}
    return without.get(comparison.verdict)


def _torchrun(summary: Summary, arm: Arm) -> str | None:
    """What starts an arm's ranks in one's own training, where there are several."""
    ranks, each = summary.plan.ranks_of(arm), summary.plan.parts_of(arm)  # of these on a node
    if ranks == 1:
        return None
    return f"torchrun {f'--nnodes {ranks // each} ' if ranks > each else ''}--nproc-per-node {each} train.py"


def _named(summary: Summary, name: str) -> str:
    """How to name the profile ``name`` in a command: a file of one's own as it was given, if that still names it."""
    typed, _ = user_command.split(summary.command)
    words = [word.partition("=")[2] if word.startswith("--") else word for word in typed]
    words += [arm["profile"] for arm in (summary.specification or {}).get("arms", ())]
    given = [word for word in words if word.endswith((".yaml", ".yml")) and Path(word).stem == name]
    if not given and profile.known(name):  # a file may be called like one of these
        return name
    file, here = next(iter(given), f"{name}.yaml"), str(Path.cwd())
    return str(Path(summary.cwd) / file) if from_folder(summary.plan) or summary.cwd != here else file


def _there(summary: Summary, arm: Arm) -> str:
    """The profile and where it was measured, as ``envkit exec`` and ``envkit doctor`` are given them."""
    image = ENGINES[arm.engine].image_option
    given = {**summary.plan.engine_options, **({image: arm.image} if arm.image else {})}
    local = arm.engine == "local"
    means = {image, *(() if local else LIMITS)}
    pairs = [*([] if local else [("engine", arm.engine)]), *(pair for pair in given.items() if pair[0] in means)]
    options = [word for name, value in pairs for word in (f"--{name.replace('_', '-')}", value)]
    return shlex.join([_named(summary, arm.profile), *options])


def _exec(summary: Summary, arm: Arm, command: str | None = None) -> str:
    """What runs the training that was measured, or another ``command``, under the arm's profile."""
    plan = summary.plan
    options = [word for name in summary.allowed_variables if name not in CHOOSING for word in ("--keep-env", name)]
    typed, _ = user_command.split(summary.command)
    allowed = "--allow-unknown" in typed or (summary.specification or {}).get("allow_unknown")
    options += ["--allow-unknown"] if allowed else []
    given = "".join(f" {word}" for word in map(shlex.quote, options))
    own = shlex.join(plan.user_command.argv) if plan.user_command else "your command"
    there = f"{_there(summary, arm)}{given}{gpus(plan, arm.engine)}"
    return f"{from_folder(plan)}envkit exec {there} -- {command or own}"


def from_folder(plan: Plan) -> str:
    """What comes before a command of the user's own that starts in another folder than the current one."""
    if plan.user_command is None or Path(plan.user_command.folder).resolve() == Path.cwd():
        return ""
    return f"cd {shlex.quote(plan.user_command.folder)} && "


def gpus(plan: Plan, engine: str) -> str:
    """The option by which ``envkit exec`` gives a container the GPUs that were trained on."""
    return " --gpus" if engine != "local" and plan.options.device == CUDA else ""


def _find_out(arm: Arm) -> str:
    return f"find out why the losses of {arm.name} differ, before you use it"


def too_much_interference(comparison: Comparison) -> str | None:
    """What to do where nearly all of its blocks were disturbed from outside, and too few others are left."""
    return None if comparison.load is None else quieter(comparison.load)


def quieter(found: Load) -> str:
    """Say what disturbed nearly all blocks, and that this is to be measured again without it."""
    why = dict(zip(CODES, KINDS.values(), strict=True))[found.kind]
    programs = f" ({', '.join(found.programs)})" if found.programs else ""
    return f"measure again on a quieter machine: {found.blocks} of {found.of} blocks were disturbed, {why}{programs}"


def _after_calibration(comparison: Comparison) -> str | None:
    if comparison.verdict in (Verdict.FASTER, Verdict.SLOWER):
        chance = f"there is no such difference, but {ERROR_RATE:.0%} of such runs show one by chance"
        return f"calibrate again: {chance}; if it stays, something else favours a side"
    return "measure a profile: envkit bench PROFILE" if comparison.speedup else None


def _longer(summary: Summary, found: Speedup, deviation: float) -> str:
    """What is excluded by now, and how long it takes to find a difference as small as the margin.

    Where so many blocks were measured already, it is about a smaller difference.
    """
    margin, blocks = summary.plan.stopping.margin, found.blocks
    excluded = max(found.high, 1 / found.low) - 1
    while (needed := _needed(summary, deviation, blocks, margin)) <= blocks:
        margin /= 2
    minutes = math.ceil(needed * summary.seconds_per_block / 60) + 1
    option = f"--blocks {needed}" if summary.plan.epochs or summary.plan.stopping.blocks else f"--budget {minutes}m"
    option += "" if margin == summary.plan.stopping.margin else f" --margin {margin * 100:g}%"
    sharper = f"to find a difference of {margin * 100:g}% takes about {needed:,} blocks: {option}"
    return f"a difference of more than {excluded:.1%} is excluded; {sharper}"


def _needed(summary: Summary, deviation: float, blocks: int, margin: float | None = None) -> int:
    return blocks_needed(deviation, blocks, margin or summary.plan.stopping.margin, summary.plan.sharing)
