"""Instants by the calendar, in UTC: their parts, where units begin, and how they are written and read."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

from stairwise.schema import Instant

_EPOCH = datetime.datetime(1970, 1, 1)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def moment(time: Instant) -> datetime.datetime:
    return _EPOCH + time * _MILLISECOND


def instant(at: datetime.datetime) -> Instant:
    return (at - _EPOCH) // _MILLISECOND


_PARTS: dict[str, Callable[[datetime.datetime], int]] = {
    "year": lambda at: at.year,
    "quarter": lambda at: (at.month + 2) // 3,
    "month": lambda at: at.month,
    "week": lambda at: at.isocalendar().week,
    "day": lambda at: at.day,
    "hour": lambda at: at.hour,
    "minute": lambda at: at.minute,
    "second": lambda at: at.second,
    "dow": lambda at: at.isoweekday() % 7,
    "isodow": lambda at: at.isoweekday(),
    "doy": lambda at: at.timetuple().tm_yday,
    "epoch": lambda at: instant(at) // 1000,
}


def part(field: str, time: Instant) -> int:
    return _PARTS[field.lower()](moment(time))


def begin(unit: str, time: Instant) -> Instant:
    """Where the unit of time begins in which an instant lies."""
    at = moment(time)
    match unit.lower():
        case "year":
            at = datetime.datetime(at.year, 1, 1)
        case "quarter":
            at = datetime.datetime(at.year, (at.month - 1) // 3 * 3 + 1, 1)
        case "month":
            at = datetime.datetime(at.year, at.month, 1)
        case "week":
            at = datetime.datetime(at.year, at.month, at.day) - datetime.timedelta(days=at.isoweekday() - 1)
        case other:
            length = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}[other]
            return time // length * length
    return instant(at)


def written(time: Instant, format_: str = "%Y-%m-%dT%H:%M:%S.%fZ") -> str:
    at = moment(time)
    parts = {"Y": f"{at.year:04}", "m": f"{at.month:02}", "d": f"{at.day:02}", "H": f"{at.hour:02}"}
    parts |= {"M": f"{at.minute:02}", "S": f"{at.second:02}", "f": f"{time % 1000:03}", "z": "Z", "%": "%"}
    return re.sub("%(.)", lambda directive: parts[directive[1]], format_)


_ZONE = r"(?P<z>[Zz]|[+-]\d\d:\d\d)"
_RFC_3339 = r"(?P<Y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)[Tt ](?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)(\.(?P<f>\d{1,9}))?" + _ZONE


def read(text: str, format_: str | None = None) -> Instant | None:
    """The instant that a text says; None where it says none."""
    found = re.fullmatch(_RFC_3339 if format_ is None else _pattern(format_), text, re.ASCII)
    if found is None:
        return None
    said = {"m": "1", "d": "1", "H": "0", "M": "0", "S": "0", "f": "", "z": "Z"}
    said |= {name: value for name, value in found.groupdict().items() if value is not None}
    try:
        at = datetime.datetime(*(int(said[name]) for name in "YmdHMS"))  # type: ignore[arg-type]
        at += int((said["f"] + "000")[:3]) * _MILLISECOND
        if said["z"] not in "Zz":
            shift = datetime.time.fromisoformat(said["z"][1:])
            ahead = datetime.timedelta(hours=shift.hour, minutes=shift.minute)
            at = at - ahead if said["z"].startswith("+") else at + ahead
    except (ValueError, OverflowError):
        return None
    return instant(at)


def _pattern(format_: str) -> str:
    patterns = {"Y": r"(?P<Y>\d{4})", "f": r"(?P<f>\d{1,9})", "z": _ZONE, "%": "%"}
    patterns |= {letter: rf"(?P<{letter}>\d\d)" for letter in "mdHMS"}
    pieces = re.split("(%.)", format_)
    return "".join(patterns[p[1]] if p.startswith("%") else re.escape(p) for p in pieces)
