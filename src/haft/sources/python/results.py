"""Converts the values that a Python function returns and yields to JSON and to text.

`invoke` converts every returned and yielded value here. The result is always valid JSON: NaN and the infinities become
null, text that is not Unicode is repaired. Plain values need no pydantic.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from haft.contracts import Answer, Failure, ToolFailed, ToolResult

# Made only once: with options, `json.dumps` builds a new encoder each time, which takes longer than the encoding.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def to_json(value: Any) -> Any:
    """Any Python value as a JSON value. Raises `ToolFailed` if the value contains itself or cannot be converted to
    JSON."""
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is str:
        return valid_text(value)
    try:
        return _plain(value)
    except RecursionError as error:
        raise ToolFailed("the tool's result is nested too deeply to be written as JSON") from error


def answer_from(result: ToolResult) -> Answer:
    """The answer for a `ToolResult`. Raises `ToolFailed` if its content is no list of content blocks."""
    text, value, content = valid_text(str(result.text)), to_json(result.value), to_json(list(result.content))
    for block in content:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise ToolFailed('the `content` of a `ToolResult` has blocks such as {"type": "image", "data": …}')
    failure = Failure("tool-failed", text or "the tool reported an error") if result.is_error else None
    return Answer(text=text, result=value, failure=failure, content=tuple(content))


def to_text(value: Any) -> str:
    """A JSON value as text for a person or a model."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    return "" if value is None else _encode(value)


def to_bytes(value: Any) -> bytes:
    """A yielded value as output: text and bytes unchanged, any other value as one line of JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return _encode(to_json(value)).encode() + b"\n"


def valid_text(text: str) -> str:
    """`text` with `?` for each lone surrogate, which UTF-8 cannot encode. File names that are not Unicode contain such
    surrogates."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return valid_text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if isfinite(value) else None
    if kind is list or kind is tuple:
        return [_plain(item) for item in value]
    if kind is dict and all(type(key) is str for key in value):
        return {valid_text(key): _plain(item) for key, item in value.items()}
    if kind in (bytes, bytearray):
        return value.decode("utf-8", "replace")
    return _by_pydantic(value)


def _by_pydantic(value: Any) -> Any:
    """Convert a value to JSON text and back. So the result has only plain types, whatever subclasses and models the
    value has."""
    import pydantic_core

    try:
        try:
            written = pydantic_core.to_json(value, fallback=str, inf_nan_mode="null")
        except UnicodeDecodeError:  # the value contains bytes that are no text
            written = pydantic_core.to_json(value, fallback=str, inf_nan_mode="null", bytes_mode="base64")
        return pydantic_core.from_json(written)
    except RecursionError:
        raise
    except Exception as error:
        raise ToolFailed(
            f"the tool's result, a `{type(value).__name__}`, cannot be written as JSON: {error}"
        ) from error
