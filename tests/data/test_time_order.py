"""Natural order of ids, and the unit of timestamps."""

from __future__ import annotations

import random
from datetime import date

import numpy as np
import pytest

from simengine.data.order import moment, natural_key, timestamp_unit
from simengine.data.table import Table
from simengine.errors import InputError


def table(times: list[int]) -> Table:
    return Table("x.inter", {"timestamp": np.array(times)}, "")


def test_natural_order_compares_digits_by_value_and_settles_equal_values():
    ids = ["u10", "u2", "u1b", "u1", "2", "10", "01", "1", "x", "", "u1a2", "u1a10"]
    expected = ["", "01", "1", "2", "10", "u1", "u1a2", "u1a10", "u1b", "u2", "u10", "x"]
    assert sorted(ids, key=natural_key) == expected
    assert sorted(random.Random(1).sample(ids, len(ids)), key=natural_key) == expected


@pytest.mark.parametrize(
    ("stamp", "unit", "day"),
    [
        # Field case 34, with its dates.
        (881250949, "s", date(1997, 12, 4)),
        (978300760, "s", date(2000, 12, 31)),
        (1362096000, "s", date(2013, 3, 1)),
        (1588615855070, "ms", date(2020, 5, 4)),
    ],
)
def test_seconds_and_milliseconds(stamp, unit, day):
    assert timestamp_unit(table([stamp]), "timestamp") == unit
    assert moment(stamp, unit).date() == day


def test_a_file_of_both_units_is_an_error_that_names_both_lines():
    with pytest.raises(
        InputError, match="1588615855070 looks like milliseconds, 881250949 in line 2 like sec"
    ) as caught:
        timestamp_unit(table([881250949, 881250950, 1588615855070]), "timestamp")
    assert caught.value.where["line"] == 4


def test_microseconds_are_an_error():
    with pytest.raises(InputError, match="neither seconds nor milliseconds"):
        timestamp_unit(table([1588615855070123]), "timestamp")
