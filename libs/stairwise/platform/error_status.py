"""The project's errors as gRPC statuses with rich details, and back.

A client of any language reads the code and the details; ours gets the error that was raised.
"""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from stairwise.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    GoneError,
    LimitError,
    NotFoundError,
    NotReadyError,
    PermissionDeniedError,
    StairwiseError,
    StatementError,
    UnauthenticatedError,
)

DOMAIN = "stairwise"

_DETAILS = "grpc-status-details-bin"
"""The trailing metadata in which gRPC carries details, on both kinds of channel."""

_CODES: Mapping[type[StairwiseError], int] = {
    ConflictError: code_pb2.FAILED_PRECONDITION,
    GoneError: code_pb2.OUT_OF_RANGE,
    ConfigError: code_pb2.UNAVAILABLE,
    UnauthenticatedError: code_pb2.UNAUTHENTICATED,
    PermissionDeniedError: code_pb2.PERMISSION_DENIED,
    LimitError: code_pb2.RESOURCE_EXHAUSTED,
}
_REFUSALS: Mapping[grpc.StatusCode, type[StairwiseError]] = {
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.OUT_OF_RANGE: GoneError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitError,
}


def to_status(error: StairwiseError) -> grpc.Status:
    """What a server answers for an error."""
    details: list[Message] = [error_details_pb2.ErrorInfo(reason=type(error).__name__, domain=DOMAIN)]
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), code_pb2.INVALID_ARGUMENT)
    if isinstance(error, StatementError):
        place = f"statement:{error.line}:{error.column}"
        violation = error_details_pb2.BadRequest.FieldViolation(field=place, description=error.message)
        details[0].metadata.update(  # type: ignore[attr-defined]
            line=str(error.line),
            column=str(error.column),
            text=error.text,
            expected=error.expected,
            source_line=error.source_line,
        )
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    elif isinstance(error, (NotFoundError, AlreadyExistsError)):
        code = code_pb2.NOT_FOUND if isinstance(error, NotFoundError) else code_pb2.ALREADY_EXISTS
        details.append(error_details_pb2.ResourceInfo(resource_type=error.kind, resource_name=error.name))
    elif isinstance(error, NotReadyError):
        code = code_pb2.UNAVAILABLE
        delay = duration_pb2.Duration(nanos=int(error.retry_after % 1 * 1e9), seconds=int(error.retry_after))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    if error.hint:
        details.append(error_details_pb2.Help(links=[error_details_pb2.Help.Link(description=error.hint)]))
    message = error.message + (f" ({error.hint})" if error.hint else "")
    packed = []
    for detail in details:
        packed.append(any_pb2.Any())
        packed[-1].Pack(detail)
    return rpc_status.to_status(status_pb2.Status(code=code, message=message, details=packed))


def is_answer(error: grpc.RpcError) -> bool:
    """Did a server of ours say so, and not the connection?"""
    return bool(_details(error))


def from_rpc_error(error: grpc.RpcError, address: str) -> StairwiseError:
    """The error that a server raised, or one that says what is wrong with the connection."""
    code = error.code()
    if code == grpc.StatusCode.UNAVAILABLE and not _details(error):
        return ConfigError(
            f"no answer from {address}: {error.details()}", hint="is the system up? `stairwise status` tells"
        )
    hint = ""
    statement: dict[str, str] | None = None
    retry_after: float | None = None
    for detail in _details(error):
        if detail.Is(error_details_pb2.Help.DESCRIPTOR):
            help_ = error_details_pb2.Help()
            detail.Unpack(help_)
            hint = help_.links[0].description
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = error_details_pb2.RetryInfo()
            detail.Unpack(retry)
            retry_after = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
        elif detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo()
            detail.Unpack(info)
            if info.reason == StatementError.__name__:
                statement = dict(info.metadata)
    message = (error.details() or code.name).removesuffix(f" ({hint})")
    if retry_after is not None:
        return NotReadyError(message, retry_after=retry_after)
    if statement is not None:
        return StatementError(
            message,
            line=int(statement["line"]),
            column=int(statement["column"]),
            text=statement.get("text", ""),
            expected=statement.get("expected", ""),
            source_line=statement.get("source_line", ""),
            hint=hint,
        )
    return _REFUSALS.get(code, StairwiseError)(message, hint=hint)


def _details(error: grpc.RpcError) -> list[any_pb2.Any]:
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            return list(status_pb2.Status.FromString(value).details)
    return []
