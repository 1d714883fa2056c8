"""From what a worker tells, or what is seen from outside, to plain numbers."""

from __future__ import annotations

import pytest
from envkit.advice.symptoms import KINDS, OUTSIDE, Symptoms, kind, of_process, of_sample
from envkit.common import codec
from envkit.engines.measurement import Measurement, Usage

from tests.advice.trainings import observed, symptoms


def test_a_watched_command_is_seen_by_its_steps_alone():
    seen = symptoms(steps=10, step_s=0.1, system_share=0.3, matrix=0.4)
    assert (seen.steps, seen.step_s, seen.threads) == (10, pytest.approx(0.1), 2)
    assert (seen.seconds, seen.cpus) == (pytest.approx(1.0), pytest.approx(2.0))
    assert seen.system_share == pytest.approx(0.3)
    assert seen.faults_per_s == pytest.approx(50_000)
    assert seen.waiting_share == pytest.approx(0.02 / 2.02)
    assert seen.operators == pytest.approx(
        {"matrix": 0.4, "recurrent": 0, "convolution": 0, "moving": 0.1, "other": 0.1, OUTSIDE: 0.4}
    )


def test_the_timed_steps_of_a_workload():
    usage = {"user_s": 3.0, "system_s": 1.0, "minor_faults": 400}
    seen = of_sample(Measurement(seconds=2.0, step_s=[0.5] * 4, usage=Usage(**usage), evidence={}))
    assert (seen.cpus, seen.system_share, seen.faults_per_s) == (2.0, 0.25, 200.0)
    assert (seen.operators, seen.matrix_share, seen.waiting_share) == (None, None, None)


def test_other_code_for_matrix_products_helps_where_it_is_generic():
    assert symptoms(matrix=0.4).matrix_share == pytest.approx(0.4)
    assert symptoms(matrix=0.4, dispatch="native").matrix_share == 0.0


def test_from_outside_no_step_is_seen():
    usage = {"user_s": 8.0, "system_s": 2.0, "minor_faults": 1000}
    seen = of_process({"seconds": 10.0, "usage": usage, "waited_s": None})
    assert (seen.step_s, seen.system_share, seen.cpus, seen.waiting_share) == (None, 0.2, 1.0, None)


def test_one_that_does_nothing():
    usage = {"user_s": 0.0, "system_s": 0.0, "minor_faults": 0}
    seen = of_process({"seconds": 10.0, "usage": usage, "waited_s": 0.0})
    assert (seen.system_share, seen.cpus, seen.waiting_share) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("aten::addmm", "matrix"), ("aten::bmm", "matrix"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", "matrix"),
        ("aten::mkldnn_convolution", "convolution"), ("aten::convolution_backward", "convolution"),
        ("aten::mkldnn_rnn_layer_backward", "recurrent"),
        ("aten::copy_", "moving"), ("aten::zero_", "moving"), ("aten::mul", "other"),
        ("autograd::engine::evaluate_function: MulBackward0", "other"), ("Optimizer.step#Adam.step", "other"),
    ],
)  # fmt: skip
def test_what_operators_do(operator, expected):
    assert kind(operator) == expected
    assert expected in KINDS


def test_operators_that_take_microseconds_each_are_small():
    sample = observed()
    sample["observed"]["operators"]["calls"] = {"aten::addmm": 30, "aten::copy_": 3_000, "aten::mul": 6_000}
    seen = of_sample(codec.parse(sample, Measurement))
    assert (seen.small_share, seen.small_per_s) == (pytest.approx(0.2), pytest.approx(30_000))
    assert symptoms().small_share == 0.0
    del sample["observed"]["operators"]["calls"]
    assert of_sample(codec.parse(sample, Measurement)).small_share is None


def test_symptoms_are_plain_data():
    seen = symptoms()
    assert Symptoms.from_json(seen.to_json()) == seen
