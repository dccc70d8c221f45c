"""Templates: a field's name, Jinja, a plain value or a function of the document."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

import jinja2
from jinja2 import meta
from pydantic import BeforeValidator

from xpe.data.code import Function, as_function
from xpe.data.documents import Record
from xpe.errors import ConfigError, DataError, MissingFieldError, nearest

Template: TypeAlias = Annotated[
    str | int | tuple[Any, ...] | Function | dict[str, Any] | Callable[..., Any],
    BeforeValidator(as_function),
]
"""Text (a field's name or Jinja), a value taken as it is, or a function of the document."""


def _regex_replace(text: str, pattern: str, repl: str, count: int = 0) -> str:
    return re.sub(pattern, repl, text, count=count)


_JINJA = jinja2.Environment(  # noqa: S701 - prompts are not HTML
    loader=jinja2.BaseLoader(), undefined=jinja2.StrictUndefined, keep_trailing_newline=True
)
_JINJA.filters["regex_replace"] = _regex_replace


@lru_cache(maxsize=4096)
def compiled(text: str) -> jinja2.Template:
    """Compile a template once.

    Raises
    ------
    ConfigError
        If it is not Jinja.
    """
    try:
        return _JINJA.from_string(text)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(f"template {text!r}, line {error.lineno}: {error.message}") from error


def value(template: Template, record: Record) -> Any:
    """Evaluate a template for a document: the raw value of a field, or rendered text.

    Raises
    ------
    MissingFieldError
        If the document lacks a field; names template, field, place and the fields there are.
    DataError
        If the template fails on this document.
    """
    if callable(template):
        return _call(template, record)
    if not isinstance(template, str):
        return template
    if template in record.doc:
        return record.doc[template]
    if template in record.documents.fields:
        raise _missing(template, template, record)
    return render(template, record)


def render(text: str, record: Record) -> str:
    """Render Jinja with the fields of a document; errors as `value`."""
    ready = compiled(text)
    try:
        return ready.render(record.doc)
    except jinja2.UndefinedError as error:
        wanted = meta.find_undeclared_variables(_JINJA.parse(text))
        names = wanted - record.doc.keys() - _JINJA.globals.keys()
        if not names:
            raise MissingFieldError(
                f"{record.place}: the template {text!r} fails: {error}"
            ) from error
        raise _missing(text, min(names), record) from error
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise DataError(f"{record.place}: the template {text!r} fails: {error}") from error


def needs_field(template: Template | None, record: Record) -> None:
    """Refuse a bare word that is no field: it would be the same text for every document.

    Raises
    ------
    MissingFieldError
        As `value`.
    """
    bare = isinstance(template, str) and template.isidentifier()
    if bare and template not in record.documents.fields:
        raise _missing(str(template), str(template), record)


def literal(text: str, opening: str = "[") -> Any:
    """Read a rendered Python literal that begins with `opening`; other text stays as it is."""
    if not text.startswith(opening):
        return text
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def _call(function: Callable[..., Any], record: Record) -> Any:
    if isinstance(function, Function):
        function = function.resolved
    try:
        return function(record.doc)
    except KeyError as error:
        raise _missing(_name(function), str(error.args[0]), record) from error
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{record.place}: {_name(function)} fails: {error!r}") from error


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def _missing(template: str, field: str, record: Record) -> MissingFieldError:
    there = sorted(record.doc)
    close = nearest(field, there)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return MissingFieldError(
        f"{record.place}: the template {template!r} needs the field {field!r}, which this "
        f"document lacks.{hint} Its fields: {', '.join(there)}"
    )
