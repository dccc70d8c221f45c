"""Units: spellings, conversions, and what is no unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpe.text.units import converted, readings, unit_at

CONVERSIONS = [
    (1.5, "km", "m", 1500.0),
    (1.5, "公里", "米", 1500.0),
    (10.0, "m/s", "km/h", 36.0),
    (10.0, "米/秒", "千米/时", 36.0),
    (60.0, "mph", "km/h", 96.56064),
    (1.0, "m^2", "cm2", 10000.0),
    (1.0, "平方米", "m^2", 1.0),
    (1.0, "L", "cm^3", 1000.0),
    (77.0, "°F", "°C", 25.0),
    (3.0, "斤", "kg", 1.5),
    (90.0, "分", "小时", 1.5),
    (50.0, "分", "元", 0.5),
    (2.0, "元/千克", "元/kg", 2.0),
    (1.0, "度", "kWh", 1.0),
    (9.0, "个", "", 9.0),
    (2.0, "years old", "岁", 2.0),
    (1.0, "KM", "m", 1000.0),
]


@pytest.mark.parametrize(("value", "unit", "other", "expected"), CONVERSIONS)
def test_equivalents(value, unit, other, expected):
    """Units of one dimension convert, in either language, alone and combined."""

    assert (pytest.approx(expected, rel=1e-12),) == converted(value, unit, other)


@pytest.mark.parametrize(("unit", "other"), [("kg", "m"), ("kg", ""), ("元", "$"), ("km", "km/h")])
def test_other_dimensions_do_not_convert(unit, other):
    """Units of different dimensions, and a unit and none, have nothing in common."""

    assert converted(1.0, unit, other) == ()


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("18 km", "km"),
        ("18km/h", "km/h"),
        ("18 千米/时", "千米/时"),
        ("18千克苹果", "千克"),
        ("18 square meters", "square meters"),
        ("18 m^2", "m^2"),
        ("18 in total", ""),
        ("18 apples", ""),
        ("18 in", "in"),
        ("18", ""),
        ("18，然后", ""),
    ],
)
def test_units_are_found(text, unit):
    """The longest known unit that follows a number is its unit."""

    assert unit == unit_at(text, 2).unit


@given(st.text(), st.integers(0, 20))
def test_no_text_raises(text, start):
    """Any place of any text has a unit or none, and a unit that is found is known."""
    found = unit_at(text, start)

    assert not found.unit or readings(found.unit)
