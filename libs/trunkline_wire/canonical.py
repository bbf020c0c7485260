"""JSON in its one canonical form (RFC 8785), so that a digest of it is the same in every language. Pure.

In JavaScript it is what `JSON.stringify` makes of a value whose keys are sorted.
"""

import json
from decimal import Decimal
from typing import Any, Final, cast

from trunkline_wire.errors import TrunklineError

MAX_INTEGER: Final = 2**53 - 1
"""Integers beyond it are no number of every language, unless a double is written just so."""


def canonical(value: Any) -> bytes:
    """Raises TrunklineError `bad_answer` for what has no canonical form: such numbers, and halves of surrogate pairs."""
    try:
        return _text(value).encode()
    except UnicodeEncodeError as error:
        raise TrunklineError("bad_answer", f"half a surrogate pair has no canonical form: {error}") from error
    except RecursionError as error:
        raise TrunklineError("bad_answer", "it is nested too deeply to have a canonical form") from error


def _text(value: Any) -> str:
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case int():
            if abs(value) > MAX_INTEGER and (value.bit_length() > 1023 or _number(float(value)) != str(value)):
                raise TrunklineError("bad_answer", "a number is too large to be signed: write it as a text")
            return str(value)
        case float():
            return _number(value)
        case dict():
            entries = sorted(cast("dict[str, Any]", value).items(), key=_utf_16)
            return f"{{{','.join(f'{_text(key)}:{_text(each)}' for key, each in entries)}}}"
        case list() | tuple():
            return f"[{','.join(_text(each) for each in cast('list[Any]', value))}]"
        case _:
            raise TrunklineError("bad_answer", f"{type(value).__name__} is no JSON")


def _utf_16(entry: tuple[str, Any]) -> bytes:
    return entry[0].encode("utf-16-be", "surrogatepass")


def _number(value: float) -> str:
    """As ECMAScript writes a number (ECMA-262, Number::toString)."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        raise TrunklineError("bad_answer", f"{value} is no number of JSON")
    if not value:
        return "0"
    text, minus = "".join(map(str, digits)), "-" if sign else ""
    point = len(text) + exponent
    if len(text) <= point <= 21:
        return f"{minus}{text}{'0' * (point - len(text))}"
    if 0 < point <= 21:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{fraction}e{'+' if point > 0 else '-'}{abs(point - 1)}"
