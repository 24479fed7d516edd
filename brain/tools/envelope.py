"""JSON-RPC messages as bytes: read so that every request gets an answer, written so that every byte is valid."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from brain.tools.outgoing import plain

MESSAGE_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of the longest message that either transport reads."""

_ID: Final = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{1,200}")'
_ID_AT_START: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_ID_AT_END: Final = re.compile(rb",\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class UnreadableError(Exception):
    """A message that is not a JSON-RPC message; it still gets an answer, under its id where that can be told."""

    def __init__(self, message: str, *, code: int = INVALID_REQUEST, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id

    def answer(self) -> JSONRPCError:
        """The error response that belongs to the message."""
        return JSONRPCError(jsonrpc="2.0", id=self.request_id, error=ErrorData(code=self.code, message=str(self)))


def read_message(raw: bytes) -> JSONRPCMessage:
    """One message from its bytes.

    Escapes of lone surrogates and bytes that are not UTF-8 reach the tool as lone surrogates, which its argument
    check refuses by name; the SDK's own reader would drop the request without an answer.

    Raises UnreadableError when it is not JSON, or not one JSON-RPC message.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(raw, by_name=False)
    except ValidationError:
        return _read_leniently(raw)
    if isinstance(message, JSONRPCNotification) and b'"id"' in raw:
        return _read_leniently(raw)
    return message


def read_strictly(raw: bytes) -> JSONRPCMessage:
    """One message from its bytes, for a transport that hands the bytes on to the SDK's own reader.

    Raises UnreadableError for what `read_message` refuses and for text that is not valid Unicode.
    """
    message = read_message(raw)
    try:
        message.model_dump_json()
    except (PydanticSerializationError, UnicodeEncodeError):
        reason = "The message holds half a surrogate pair (a cut emoji) or bytes that are not UTF-8."
        raise UnreadableError(reason, code=INVALID_PARAMS, request_id=getattr(message, "id", None)) from None
    return message


def _read_leniently(raw: bytes) -> JSONRPCMessage:
    try:
        value = json.loads(raw.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        raise UnreadableError("The message is not JSON.", code=PARSE_ERROR) from None
    if not isinstance(value, dict):
        raise UnreadableError("The message must be one JSON-RPC object; batches are not accepted.")
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        raise UnreadableError("The message is not a JSON-RPC request.", request_id=_request_id(value)) from None
    if isinstance(message, JSONRPCNotification) and "id" in value:
        raise UnreadableError("The id of a request is a whole number or text.")
    return message


def _request_id(value: dict[str, Any]) -> RequestId | None:
    given = value.get("id")
    if isinstance(given, str):
        return given if given.isascii() else None
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def too_long(start: bytes, end: bytes) -> UnreadableError:
    """The refusal of a message over the limit, its id taken from the message's first or last bytes."""
    found = _ID_AT_START.match(start) or _ID_AT_END.search(end)
    request_id = json.loads(found.group(1).decode("utf-8", "replace")) if found else None
    return UnreadableError(f"The message is too long; at most {MESSAGE_LIMIT} bytes are read.", request_id=request_id)


def write_message(message: JSONRPCMessage) -> bytes:
    """A message as one line of valid UTF-8, whatever strings it holds."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except (PydanticSerializationError, UnicodeEncodeError):
        text = json.dumps(plain(message.model_dump(by_alias=True, exclude_unset=True)))
    return text.encode() + b"\n"
