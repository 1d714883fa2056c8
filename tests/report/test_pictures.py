"""Pictures of a summary: what they show, that it can be read, and that the same record gives the same bytes."""

from __future__ import annotations

import re
import struct

import pytest
from envkit.report import pictures
from envkit.report.messages import pictures as messages
from envkit.report.pictures import DISTRIBUTIONS, FOREST, TIME_COURSE, style

from tests.records import conclude
from tests.report.planted import NOT_IN_EFFECT, disturbed, failed
from tests.reports import events_of
from tests.simulated_worker import of_ranks
from tests.simulation import times

CALIBRATION = {"scale": 0.01, "blocks": 20, "folder": "results/x", "time": 1_792_000_000.0}
NOISY = [1.0, 1.05, 0.95, 1.1, 0.9, 1.02, 0.98]


def drawn(picture, events, narrow=False):
    """The figure, laid out."""
    result = conclude(events)
    with style.matplotlib_figure((3.7 if narrow else 7.6, picture.height(result, narrow))) as figure:
        picture.draw(figure, result, narrow)
        figure.draw_without_rendering()
    return figure


def texts(figure):
    from matplotlib.text import Text

    return [one for one in figure.findobj(Text) if one.get_visible() and one.get_text().strip()]


def words(figure):
    return " | ".join(one.get_text() for one in texts(figure))


def segments(axes):
    """The horizontal lines, as (from, to, height)."""
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    return [(*at, where[0]) for at, where in lines if len(at) == 2 and where[0] == where[1]]


def markers(axes, marker):
    return [line for line in axes.lines if line.get_marker() == marker and len(line.get_xdata()) == 1]


@pytest.mark.parametrize("narrow", [False, True])
def test_speedups_and_their_intervals_are_where_the_axis_says(narrow):
    events = events_of(mine={"seconds": times(0.5)}, others={"same": {}})
    (axes,) = drawn(FOREST, events, narrow).axes
    found = [one.speedup for one in conclude(events).comparisons]
    assert [one.words for one in found] == ["faster", "no difference larger than 2%"]
    assert segments(axes) == [(one.low, one.high, row) for row, one in enumerate(found)]
    assert [(one.get_xdata()[0], one.get_ydata()[0]) for one in markers(axes, "s")] == [
        (one.ratio, row) for row, one in enumerate(found)
    ]
    assert axes.get_xscale() == "log"
    low, high = axes.get_xlim()
    assert low < found[1].low
    assert found[0].high < high


def test_speedups_are_labelled_with_names_and_figures():
    events = events_of(others={"same": {}})
    shown = words(drawn(FOREST, events))
    axis = ("baseline's time / the profile's time", "← slower", "faster →")
    for word in ("mine", "same", "95% confidence interval", "±2%", *axis):
        assert word in shown
    assert not [word for word in ("noise floor", "without disturbed blocks") if word in shown]
    found = conclude(events).comparisons[0].speedup
    assert f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})" in shown


def test_a_profile_that_was_not_in_effect_keeps_its_row_but_has_no_interval():
    figure = drawn(FOREST, events_of(others={"broken": NOT_IN_EFFECT}))
    assert "broken" in words(figure)
    assert "not in effect" in words(figure)
    assert [row for _, _, row in segments(figure.axes[0])] == [0]


def test_the_result_without_disturbed_blocks_is_beneath():
    events = disturbed(events_of(blocks=9), 4)
    figure = drawn(FOREST, events)
    (comparison,) = conclude(events).comparisons
    (all_blocks, others) = segments(figure.axes[0])
    assert all_blocks[:2] == (comparison.speedup.low, comparison.speedup.high)
    assert others[:2] == (comparison.without_interference.low, comparison.without_interference.high)
    assert others[2] > all_blocks[2]  # rows count from the top
    assert "without disturbed blocks" in words(figure)


@pytest.mark.slow
def test_the_noise_floor_is_shown_where_it_is_known():
    assert "noise floor of identical profiles (±0.8%)" in words(drawn(FOREST, events_of(calibration=CALIBRATION)))


def test_step_times_have_every_arm_every_sample_and_the_slowest_step():
    events = events_of(mine={"seconds": [*times(0.5)[:6], 60.0]})
    figure = drawn(DISTRIBUTIONS, events)
    shown = words(figure)
    for word in ("baseline", "mine", "ms per step", "slowest 340 ms", "slowest 20,000 ms"):
        assert word in shown, shown
    medians = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [len(line.get_xdata()) for line in medians] == [7, 7]


@pytest.mark.parametrize(("slowest", "scale"), [(1.2, "linear"), (60.0, "log")])
def test_step_times_with_a_long_tail_get_a_logarithmic_axis(slowest, scale):
    (axes,) = drawn(DISTRIBUTIONS, events_of(mine={"seconds": [*NOISY, slowest]}, blocks=8)).axes
    assert axes.get_xscale() == scale
    assert ("logarithmic" in axes.get_xlabel()) is (scale == "log")


@pytest.mark.slow
def test_step_times_that_are_all_equal():
    same = {"seconds": [1.0]}
    assert "slowest 333 ms" in words(drawn(DISTRIBUTIONS, events_of(mine=same, baseline=same)))


def test_the_course_has_disturbed_samples_apart():
    figure = drawn(TIME_COURSE, disturbed(disturbed(events_of(), 2), 5, arm="baseline"))
    of_baseline, of_mine = figure.axes
    assert [len(markers(axes, "X")) for axes in (of_baseline, of_mine)] == [1, 1]
    assert [len(markers(axes, "o")) for axes in (of_baseline, of_mine)] == [6, 6]
    hollow = [one for one in markers(of_mine, "o") if one.get_markerfacecolor() == style.PAPER]
    assert len(hollow) == 1  # of block 5, where the reference was disturbed
    assert "disturbed from outside" in words(figure)


@pytest.mark.slow
def test_the_course_has_equal_scales():
    figure, spans = drawn(TIME_COURSE, events_of(mine={"seconds": NOISY})), []
    assert "disturbed" not in words(figure)
    for axes in figure.axes:
        low, high = axes.get_ylim()
        spans.append(high / low)
        (course,) = [line for line in axes.lines if len(line.get_xdata()) > 1]
        assert low < min(course.get_ydata())
        assert max(course.get_ydata()) < high
    assert spans[0] == pytest.approx(spans[1])


def shift(events, from_block, seconds):
    """What was measured from that block on was measured so much later, by the clock."""
    for event in events:
        if event.get("block", -1) >= from_block:
            event["time"] += seconds
    return events


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 86400, -600])
def test_a_long_pause_or_a_clock_set_back_takes_no_room_from_the_course(seconds):
    figure = drawn(TIME_COURSE, shift(events_of(), 4, seconds))
    assert "minutes of measuring" in words(figure)
    for axes in figure.axes:
        (course,) = [line for line in axes.lines if len(line.get_xdata()) > 1]
        at = list(course.get_xdata())
        assert at == sorted(at)
        assert max(at) - min(at) < 20


@pytest.mark.parametrize(
    ("events", "reasons"),
    [
        (events_of(blocks=0), [messages.NO_INTERVAL, *[messages.NO_SAMPLE] * 2]),
        (events_of(blocks=3), [messages.NO_INTERVAL, None, None]),
        (failed(events_of()), [messages.NO_INTERVAL, None, None]),
        (events_of(blocks=1, study={"epochs": 1}),
         [messages.ONE_RUN_EACH, None, messages.NO_COURSE]),
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_drawn_and_why(events, reasons):
    assert [picture.missing(conclude(events)) for picture in pictures.PICTURES] == reasons


MANY = {f"profile-{number}-with-a-name-that-is-long": {"seconds": NOISY} for number in range(6)}


def contrast(colour):
    """Return the contrast of a colour with white paper, as WCAG 2.2 defines it."""
    from matplotlib.colors import to_rgb

    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return 1.05 / (0.05 + sum(part * share for part, share in zip(parts, (0.2126, 0.7152, 0.0722), strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize("picture", [*pictures.PICTURES, pictures.LEARNING_CURVES], ids=lambda picture: picture.name)
@pytest.mark.parametrize("others", [{}, MANY], ids=["two", "many"])
@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
def test_all_words_can_be_read(picture, others, narrow):
    learns = picture is pictures.LEARNING_CURVES
    usual = disturbed(events_of(10, others=others, calibration=CALIBRATION), 1)
    events = trained(others=others) if learns else usual
    figure = drawn(picture, events, narrow)
    assert {one.get_fontsize() >= 9 for one in texts(figure)} == {True}
    assert {contrast(one.get_color()) >= 4.5 for one in texts(figure)} == {True}
    inside, page = figure.get_tightbbox(), figure.bbox_inches  # of everything that is drawn, in inches
    assert (inside.x0 >= page.x0, inside.x1 <= page.x1) == (True, True)
    assert (inside.y0 >= page.y0, inside.y1 <= page.y1) == (True, True)


@pytest.mark.slow
def test_names_are_shown_as_they_are():
    """And not as formulas, with $, or as markup."""
    events = events_of(others={"$x^2$": {}, "<b>&": {}})
    shown = pictures.svg(FOREST, conclude(events), False, "A <picture> & \"more\"")  # fmt: skip
    assert ">$x^2$<" in shown
    assert ">&lt;b&gt;&amp;<" in shown
    assert "<b>" not in shown
    assert "A &lt;picture&gt; &amp;" in shown


@pytest.mark.slow
def test_steps_of_larger_batches_are_told_of():
    """Of ranks in weak scaling, beside those of one process."""
    events = events_of()
    events[0]["study"] |= {"ranks": 2, "weak": True}
    for event in events:
        if event["event"] == "sample":
            probes = {name: found for name, found in event["evidence"].items() if name != "seconds"}
            event.update(of_ranks(2, {}, probes))
    for picture in (FOREST, DISTRIBUTIONS, TIME_COURSE):
        assert "weak scaling: 2 ranks, 2 times the batch" in words(drawn(picture, events))
        assert "scaling" not in words(drawn(picture, events_of()))


@pytest.mark.slow
def test_steps_of_several_at_once_are_told_of():
    events, said = events_of(), "several trainings at once: a step is one step of each, and speedups are per item"
    events[0]["study"]["arms"][1]["instances"] = 2
    for picture in (FOREST, DISTRIBUTIONS, TIME_COURSE):
        assert said in words(drawn(picture, events))


def test_an_svg_takes_its_colours_from_the_page():
    shown = pictures.svg(TIME_COURSE, conclude(disturbed(events_of(), 1)), False, "")
    assert "var(--reference)" in shown
    assert "var(--interference)" in shown
    fixed = set(re.findall(r"#[0-9a-fA-F]{6}\b", shown))
    assert fixed == set()


@pytest.mark.slow
def test_the_same_record_gives_the_same_bytes_whatever_the_users_settings():
    import matplotlib

    result = conclude(events_of())
    first = (pictures.png(result), pictures.svg(FOREST, result, False, ""))
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert (pictures.png(result), pictures.svg(FOREST, result, False, "")) == first


@pytest.mark.slow
def test_a_png_has_all_pictures_below_each_other():
    content = pictures.png(conclude(events_of()))
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert width == 7.6 * 200
    assert width < height < 2 * width


@pytest.mark.slow
def test_a_png_says_what_is_left_out(monkeypatch):
    figures = []
    monkeypatch.setattr(style, "to_png", lambda figure, dpi: figures.append(figure))
    pictures.png(conclude(events_of(blocks=3)))
    assert "left out: no profile has a confidence interval" in words(figures[0])
    assert "slowest" in words(figures[0])


@pytest.mark.parametrize(
    ("low", "high"), [(0.93, 1.06), (0.4, 1.4), (0.99, 1.01), (20, 500), (0.001, 3000), (27.1, 27.2)]
)
def test_ticks_are_few_round_and_inside(low, high):
    ticks = style.log_ticks(low, high, 8)
    assert 2 <= len(ticks) <= 8
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))
    assert all(len(f"{tick:g}".replace(".", "").strip("0")) <= 5 for tick in ticks)


ACCURACIES = [{"accuracy": accuracy} for accuracy in (0.5, 0.7, 0.8)]


def trained(blocks=1, until="accuracy=0.75", others=None, **mine):
    others = {name: {"figures": ACCURACIES} for name in others or ()}
    return events_of(
        blocks, mine={"figures": ACCURACIES, **mine}, baseline={"figures": ACCURACIES}, others=others,
        study={"epochs": 3, "until": until, "blocks": blocks},
    )  # fmt: skip


@pytest.mark.parametrize("narrow", [False, True])
def test_learning_curves_are_against_the_time_of_training(narrow):
    figure = drawn(pictures.LEARNING_CURVES, trained(), narrow)
    of_loss, of_accuracy = figure.axes
    baseline, mine, target = of_accuracy.lines
    assert list(baseline.get_xdata()) == pytest.approx([1 / 3, 2 / 3, 1])
    assert list(mine.get_xdata()) == pytest.approx([0.4975 / 3, 2 * 0.4975 / 3, 0.4975])
    assert list(mine.get_ydata()) == [0.5, 0.7, 0.8]
    assert list(target.get_ydata()) == [0.75, 0.75]
    assert list(of_loss.lines[0].get_ydata()) == pytest.approx([2.3, 2.2, 2.1])
    shown = words(figure)
    for word in ("baseline", "mine", "until accuracy=0.75", "seconds of training, without tests", "80%"):
        assert word in shown, shown


def test_long_trainings_are_in_minutes():
    figure = drawn(pictures.LEARNING_CURVES, trained(seconds=[600.0]))
    assert "minutes of training" in words(figure)
    assert figure.axes[1].lines[1].get_xdata()[-1] == pytest.approx(10)


def test_learning_curves_are_drawn_where_there_are_some(monkeypatch):
    figures = []
    monkeypatch.setattr(style, "to_png", lambda figure, dpi: figures.append(figure))
    pictures.png(conclude(trained()))
    pictures.png(conclude(events_of()))
    assert ["Learning curves" in words(figure) for figure in figures] == [True, False]
    assert pictures.LEARNING_CURVES.missing(conclude(events_of())) == messages.NO_TESTS
