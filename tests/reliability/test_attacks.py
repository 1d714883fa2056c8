"""Each attack of the list has a test that is there."""

from __future__ import annotations

import ast

import pytest
from envkit.engines.base import PROJECT

from tests.reliability.__main__ import DOCS, attack_rows
from tests.reliability.attacks import ATTACKS


@pytest.mark.parametrize("name", [name for attack in ATTACKS for name in attack.tests])
def test_it_has_a_test(name):
    file, _, function = name.partition("::")
    tree = ast.parse((PROJECT / file).read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert not function or function in names


def test_the_page_lists_all_of_them():
    lines = DOCS.read_text().splitlines()
    assert [line for line in attack_rows() if line not in lines] == []
