"""log_record, read_records."""

from __future__ import annotations

from pydantic import Field

from brain.errors import InvalidInput
from brain.render import counted, inline
from brain.services import inputs, records
from brain.tools.common import (
    Arguments,
    AsOf,
    Brain,
    Expected,
    Limit,
    Result,
    Said,
    Scope,
    ValidAt,
    row_text,
    write_result,
)
from brain.tools.protocol import AnyTool, Tool


class NamedValue(Arguments):
    """A free field of a record."""

    name: str = Field(description="Name")
    value: str = Field(description="Value")


class LogRecord(Arguments):
    """Hard data."""

    kind: str = Field(description="invoice, deadline, measurement, …")
    title: str = Field(description="What it is")
    date: str = Field(description="YYYY-MM-DD")
    value: str = Field(default="", description="Exact decimal such as 1250.00")
    unit: str = Field(default="", description="Unit or currency, such as EUR or h")
    fields: list[NamedValue] = Field(default=[], description="More named values")
    source: str = Field(default="", description="Where it comes from")
    scope: Scope = ""
    said: Said = ""
    valid_from: str = Field(default="", description="Holds from; default always")
    valid_to: str = Field(default="", description="Holds until, exclusive")
    expected_version: Expected = 0


async def log_record(brain: Brain, given: LogRecord) -> Result:
    """Write a record."""
    names = [each.name for each in given.fields]
    if len(set(names)) != len(names):
        raise InvalidInput("fields must not name the same field twice.", field="fields")
    row, changed = await brain.write(
        lambda work: records.log(
            work,
            kind=given.kind,
            title=given.title,
            date=given.date,
            value=given.value,
            unit=given.unit,
            fields={each.name: each.value for each in given.fields},
            source=given.source,
            scope=given.scope,
            said=given.said,
            valid_from=given.valid_from,
            valid_to=given.valid_to,
            expected_version=given.expected_version,
        )
    )
    return write_result(
        records.LAYER, row, ("new_version" if row.version > 1 else "created") if changed else "unchanged"
    )


class ReadRecords(Arguments):
    """Which records to read."""

    scope: Scope = ""
    kind: str = Field(default="", description="Exact kind")
    title: str = Field(default="", description="Part of the title")
    since: str = Field(default="", description="Date from, YYYY-MM-DD")
    until: str = Field(default="", description="Date before, YYYY-MM-DD")
    valid_at: ValidAt = ""
    as_of: AsOf = ""
    limit: Limit = 50
    offset: int = Field(default=0, ge=0, le=1_000_000, description="Items to skip")


async def read_records(brain: Brain, given: ReadRecords) -> Result:
    """Read records and their figures."""
    found = await brain.read(
        lambda work: records.read(
            work,
            scope=given.scope,
            kind=given.kind,
            title=given.title,
            since=given.since,
            until=given.until,
            valid_at=given.valid_at,
            limit=given.limit,
            offset=given.offset,
        ),
        as_of=given.as_of,
    )
    rows = [inputs.shown(records.LAYER, each) for each in found.records]
    figures = [{name: inputs.json_form(value) for name, value in each.items()} for each in found.figures]
    lines = [f"{counted(found.total, 'record')} match; {len(rows)} shown from {found.offset}."]
    for each in figures:
        unit = inline(each["unit"], 40)
        if each["values"]:
            lines.append(
                f"{each['kind']}: {counted(each['values'], 'value')} in {unit or 'no unit'}, sum {each['sum']},"
                f" least {each['min']}, greatest {each['max']}"
            )
    lines += [row_text(row, skip=_WHO) for row in rows]
    data = {"records": rows, "figures": figures, "total": found.total, "offset": found.offset}
    return Result("\n".join(lines), data)


_WHO = (
    "origin",
    "client",
    "session",
    "model",
    "known_from",
    "recorded_at",
    "tombstone",
    "valid_from",
    "valid_to",
    "scope_id",
)

TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "log_record",
        "Log a record",
        "Hard data: an invoice, a deadline, a measurement. The same kind, title and date make a new version.",
        LogRecord,
        log_record,
        reads_only=False,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "read_records",
        "Read records",
        "Hard data by kind, title and period; count, sum, least and greatest by kind and unit over all that match.",
        ReadRecords,
        read_records,
        reads_only=True,
    ),
)
