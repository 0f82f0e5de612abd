"""Tables for data-frame libraries."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

#: Rows that a notebook or a prompt shows.
_SHOWN = 20


class Frame:
    """A table with named columns. It belongs to no library, and all of them take it without copying the numbers:

        >>> frame = stepscope.open("logs/").ops
        >>> frame.to_pandas()                 # needs pandas (and pyarrow)
        >>> frame.to_polars()                 # needs polars
        >>> frame.to_arrow()                  # needs pyarrow
        >>> duckdb.sql("SELECT type, sum(self_ms) FROM frame GROUP BY type")

    Without any of them:

        >>> frame.columns                     # names of the columns
        >>> frame["self_ms"]                  # one column as a list; unknown is None
        >>> for row in frame: print(row["name"], row["self_ms"])
        >>> print(frame)                      # as the command line shows it

    Times are milliseconds and shares are fractions from 0 to 1, as the columns' names say. Any library that knows Arrow's
    C stream interface takes a frame directly: ``pyarrow.table(frame)``, ``polars.DataFrame(frame)``.
    """

    __slots__ = ("_native",)

    def __init__(self, native: Any) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The columns as a capsule of Arrow's C stream interface."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        """Names and types of the columns as a capsule of Arrow's C data interface."""
        return self._native.__arrow_c_schema__()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._native.names)

    @property
    def headline(self) -> str | None:
        """The answer in one line, if the view has one."""
        return self._native.headline

    def __len__(self) -> int:
        return int(self._native.rows)

    def __getitem__(self, column: str) -> list[Any]:
        """One column as a list; unknown values are None."""
        return list(self._native.column(column))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dict."""
        return iter(self.rows())

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """The rows as dicts: all, or the first ``most``."""
        names = self.columns
        columns = [self._native.column(name, most) for name in names]
        return [dict(zip(names, row)) for row in zip(*columns)]

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``. Repeated names become categories, so that they take little memory."""
        import pandas

        make = getattr(pandas.DataFrame, "from_arrow", None)
        return make(self) if make is not None else self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``."""
        import pyarrow

        return pyarrow.table(self)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Frame cannot be pickled: it points into memory of this process; send .to_arrow() or .rows() instead"
        )

    def __repr__(self) -> str:
        text = self._native.text(top=None, width=None)
        if text:
            return str(text).rstrip("\n")
        return "Frame of {:,} rows: {}".format(len(self), ", ".join(self.columns))

    def _repr_html_(self) -> str:
        rows = self.rows(_SHOWN)
        # Notebooks align everything right. That suits numbers; names are read from the left.
        texts = {name for name in self.columns if any(isinstance(row[name], str) for row in rows)}

        def cells(tag: str, values: dict[str, Any]) -> str:
            left = ' style="text-align:left"'
            shown = ((left if name in texts else "", html.escape(_shown(values[name]))) for name in self.columns)
            return "".join("<{0}{1}>{2}</{0}>".format(tag, style, text) for style, text in shown)

        head = cells("th", {name: name for name in self.columns})
        body = "".join("<tr>{}</tr>".format(cells("td", row)) for row in rows)
        headline = "<p>{}</p>".format(html.escape(self.headline)) if self.headline else ""
        more = "<p>{:,} rows in all</p>".format(len(self)) if len(self) > len(rows) else ""
        table = "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>".format(head, body)
        return '{}<div style="overflow-x:auto">{}</div>{}'.format(headline, table, more)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "{:.6g}".format(value)
    return str(value)
