"""Adding rows of a table, as fast as the CPU loads them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LINE = 64
"""Bytes of a cache line, which is a row of a table of two axes."""
_UNROLL = 4
_WORD = ir.IntType(64)


def _word(value: int) -> Any:
    return ir.Constant(_WORD, value)


def _row_type(context: Any, table: Any) -> Any:
    element = context.get_data_type(table.dtype)
    if table.ndim == 1:
        return element
    return ir.VectorType(element, LINE * 8 // table.dtype.bitwidth)


def _pointer(context: Any, builder: Any, array: Any, value: Any, row_type: Any) -> Any:
    data = make_array(array)(context, builder, value).data
    return builder.bitcast(data, row_type.as_pointer())


def _pairwise(builder: Any, parts: list[Any]) -> Any:
    while len(parts) > 1:
        parts = [builder.add(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@intrinsic  # type: ignore[untyped-decorator]
def add_rows(
    _context: Any, sums: Any, _place: Any, table: Any, _row: Any, index: Any, _n: Any
) -> Any:
    """`add_rows(sums, place, table, row, index, n)` adds `n` rows of `table` to one of `sums`.

    The rows at `row + index[i]` are added to row `place`.

    A row is one number (a table of one axis) or one cache line (a table of two axes): one load
    and one addition of an LLVM vector, which every CPU runs in the width it has. A loop over the
    columns would stay scalar. The dtypes of `sums` and `table` are the same, int32 or int64;
    `index` is uint8 or uint32. Sums must not overflow; nothing is checked.
    """

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        row_type = _row_type(context, table)
        align = table.dtype.bitwidth // 8
        rows = builder.gep(_pointer(context, builder, table, args[2], row_type), [args[3]])
        target = builder.gep(_pointer(context, builder, sums, args[0], row_type), [args[1]])
        indices = make_array(index)(context, builder, args[4]).data

        def read(i: Any) -> Any:
            which = builder.zext(builder.load(builder.gep(indices, [i])), _WORD)
            return builder.load(builder.gep(rows, [which]), align=align)

        def add(value: Any) -> None:
            builder.store(builder.add(builder.load(total), value), total)

        total = cgutils.alloca_once_value(builder, builder.load(target, align=align))
        even = builder.and_(args[5], _word(-_UNROLL))
        with cgutils.for_range_slice(builder, _word(0), even, _word(_UNROLL), _WORD) as (i, _):
            near = [read(builder.add(i, _word(k))) for k in range(_UNROLL)]
            add(_pairwise(builder, near))
        with cgutils.for_range_slice(builder, even, args[5], _word(1), _WORD) as (i, _):
            add(read(i))
        builder.store(builder.load(total), target, align=align)
        return context.get_dummy_value()

    signature = types.void(sums, types.int64, table, types.int64, index, types.int64)
    return signature, generate
