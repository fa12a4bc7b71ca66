"""Arrow columns seen as numpy arrays without a copy, and numpy results as Arrow columns.

A view of a column with NULLs holds whatever lies in the NULLs' slots: callers mask with ``validity``, which
is None for the common column without NULLs, so that it costs nothing.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_HUGEINT = pa.decimal128(38, 0)
_CANONICAL_NAN = np.float64(np.nan)
_INT64: np.dtype[np.int64] = np.dtype(np.int64)
_SIGN_OFF = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def int64_view(column: pa.Array) -> Ints:
    """The values of an int64 column, NULL slots included."""
    return _view(column, _INT64)


def float64_view(column: pa.Array) -> Floats:
    """The values of a float64 column, NULL slots included."""
    return _view(column, np.dtype(np.float64))


def int32_view(column: pa.Array) -> npt.NDArray[np.int32]:
    """The values of an int32 column, NULL slots included."""
    return _view(column, np.dtype(np.int32))


def number_view(column: pa.Array) -> npt.NDArray[Any]:
    """The values of a column of numbers of any width, NULL slots included."""
    return _view(column, np.dtype(column.type.to_pandas_dtype()))


def _view(column: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if len(column) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)


def bool_values(column: pa.Array) -> Bools:
    """The values of a BOOLEAN column, one byte each; False in NULL slots."""
    filled = column.fill_null(False) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.bool_)


def decimal_words(column: pa.Array) -> Words:
    """A decimal128 column as rows of two words, the low one first; the high one carries the sign."""
    if len(column) == 0:
        return np.empty((0, 2), np.uint64)
    words = np.frombuffer(column.buffers()[1], np.uint64, 2 * len(column), column.offset * 16)
    return words.reshape(-1, 2)


def validity(column: pa.Array) -> Bools | None:
    """True where the column has a value; None where it has one everywhere."""
    if column.null_count == 0:
        return None
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def from_numpy(values: npt.NDArray[Any], valid: Bools | None = None) -> pa.Array:
    """A column over ``values``, whose memory it shares; NULL where ``valid`` is False."""
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    buffers = [_bitmap(valid), pa.py_buffer(data)]
    return pa.Array.from_buffers(_arrow_type(values.dtype), len(values), buffers)


@cache
def _arrow_type(dtype: np.dtype[Any]) -> pa.DataType:
    return pa.from_numpy_dtype(dtype)


def from_words(words: Words, valid: Bools | None = None) -> pa.Array:
    """A decimal128(38, 0) column over rows of two words, the low one first."""
    buffers = [_bitmap(valid), pa.py_buffer(np.ascontiguousarray(words))]
    return pa.Array.from_buffers(_HUGEINT, len(words), buffers)


def of_one(value: float | None, kind: pa.DataType) -> pa.Array:
    """A column of one row. Integers, also such of 128 bits, take a shorter way than through Arrow's conversions."""
    if not isinstance(value, int):
        return pa.array([value], kind)
    octets = value.to_bytes(kind.bit_width // 8, sys.byteorder, signed=True)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(octets)])


def _bitmap(valid: Bools | None) -> pa.Buffer | None:
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def canonical(values: Floats) -> Floats:
    """The same doubles with one spelling each: −0.0 becomes 0.0, every NaN the same NaN."""
    positive = values + 0.0
    nan = np.isnan(positive)
    return np.where(nan, _CANONICAL_NAN, positive) if nan.any() else positive


def order_keys(values: Floats) -> Ints:
    """Integers that are ordered as the doubles are: −0.0 = 0.0, NaN equal to itself and above everything."""
    bits = canonical(values).view(np.int64)
    return bits ^ ((bits >> 63) & _SIGN_OFF)


def from_order_keys(keys: Ints) -> Floats:
    """The doubles whose ``order_keys`` are ``keys``."""
    return (keys ^ ((keys >> 63) & _SIGN_OFF)).view(np.float64)
