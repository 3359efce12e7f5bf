"""An optional package that is missing is named, with the command that brings it."""

import importlib

import pytest

from luciole.errors import MissingExtra
from luciole.runtime.extras import require


def test_a_missing_package_is_named_with_the_extra_that_brings_it() -> None:
    with pytest.raises(MissingExtra) as caught, require("postgres"):
        importlib.import_module("no_such_package")
    assert str(caught.value) == (
        "the package no_such_package is not installed; to get it: pip install 'luciole[postgres]'"
    )


def test_another_error_of_an_import_passes_unchanged() -> None:
    with pytest.raises(ImportError, match="broken") as caught, require("postgres"):
        raise ImportError("broken binary")
    assert type(caught.value) is ImportError
