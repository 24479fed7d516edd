"""Every command of the brain, run in this process: what each one changes and shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import typer
from pydantic import SecretStr

from brain.cli import app as entry
from brain.cli.output import cell, visible
from brain.config import Settings
from brain.runtime import open_brain, run
from brain.services import friction

EXPECTED_COMMANDS = (
    {"serve", "demo", "migrate", "status", "doctor", "session", "remember", "search", "show", "history", "trail"} |
    {"digest", "audit", "pin", "thread", "wiki", "record", "constraint", "forget", "friction", "scope"} |
    {"reindex", "calibrate"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        told = json.loads(self.out)
        assert told["ok"], told
        return told["data"]

    @property
    def error(self) -> Any:
        return json.loads(self.out)["error"]


Cli = Callable[..., Done]


@pytest.fixture
def cli(dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("DATABASE_URL", dsn)

    def call(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            entry.main(arguments)
        printed = capsys.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err)

    return call


def test_every_command_of_the_contract_is_there() -> None:
    command: Any = typer.main.get_command(entry.app)
    assert set(command.commands) >= EXPECTED_COMMANDS


def test_a_fact_is_remembered_found_corrected_forgotten_and_restored(cli: Cli) -> None:
    stored = cli(
        "remember", "The invoice went to Marlow.", "--key", "marlow", "--occurred", "2026-03-01", "--json"
    ).data
    assert stored["outcome"] == "created"
    again = cli("remember", "The invoice went to Marlow.", "--key", "marlow", "--occurred", "2026-03-01", "--json").data
    assert again["outcome"] == "unchanged"
    [hit] = cli("search", "invoice", "marlow", "--json").data["hits"]
    assert hit["ref"] == stored["row"]["ref"]
    forget = ("forget", "marlow", "--reason", "sent to somebody else")
    refused = cli(*forget)
    assert (refused.code, refused.out) == (2, "")
    assert "Add --yes." in refused.err
    assert cli(*forget, "--yes", "--json").data["outcome"] == "forgotten"
    nothing = cli("search", "invoice", "marlow", "--json")
    assert nothing.code == 0
    assert nothing.data["message"] == "No relevant memories found for this query."
    assert cli("show", "marlow").code == 3
    then = stored["row"]["known_from"]
    assert cli("show", "marlow", "--as-of", then, "--json").data["text"] == "The invoice went to Marlow."
    assert cli("forget", "marlow", "--restore", "--json").data["outcome"] == "restored"
    versions = cli("history", "marlow", "--json").data["versions"]
    assert [each["tombstone"] for each in versions] == [False, True, False]
    assert cli("show", "marlow@1", "--json").data["version"] == 1


def test_a_fact_is_visible_only_while_it_holds(cli: Cli) -> None:
    cli(
        "remember",
        "The office is in Bergen.",
        "--key",
        "office",
        "--valid-from",
        "2025-01-01",
        "--valid-to",
        "2026-01-01",
    )
    assert cli("show", "office").code == 3
    assert cli("show", "office", "--valid-at", "2025-06-01", "--json").data["text"] == "The office is in Bergen."
    assert cli("search", "office", "bergen", "--valid-at", "2025-06-01", "--json").data["reason"] == "matched"
    assert cli("trail", "--valid-at", "2025-06-01", "--json").data["facts"][0]["key"] == "office"


def test_a_human_may_say_when_a_fact_was_known(cli: Cli) -> None:
    row = cli("remember", "Known for long.", "--known-at", "2026-01-05T10:00:00Z", "--json").data["row"]
    assert row["known_from"] == "2026-01-05T10:00:00Z"
    assert [each["text"] for each in cli("trail", "--as-of", "2026-02-01", "--json").data["facts"]] == [
        "Known for long."
    ]
    assert cli("trail", "--as-of", "2026-01-01", "--json").data["facts"] == []


def test_the_trail_pages_by_cursor_which_pins_the_instant(cli: Cli) -> None:
    for day in ("01", "02", "03"):
        cli("remember", f"Day {day}.", "--occurred", f"2026-03-{day}")
    first = cli("trail", "--limit", "2", "--json").data
    assert [each["text"] for each in first["facts"]] == ["Day 01.", "Day 02."]
    second = cli("trail", "--limit", "2", "--cursor", first["cursor"], "--json").data
    assert [each["text"] for each in second["facts"]] == ["Day 03."]
    both = cli("trail", "--cursor", first["cursor"], "--as-of", "2026-03-01", "--json")
    assert (both.code, both.error["code"]) == (2, "invalid_input")
    assert "\nMore: --cursor " in cli("trail", "--limit", "2").out


def test_records_add_up_exactly(cli: Cli) -> None:
    cli("record", "log", "invoice", "Marlow 14", "2026-02-01", "--value", "0.10", "--unit", "EUR", "--field", "paid=no")
    cli("record", "log", "invoice", "Marlow 15", "2026-02-02", "--value", "0.20", "--unit", "EUR")
    found = cli("record", "list", "--kind", "invoice", "--json").data
    assert [each["title"] for each in found["records"]] == ["Marlow 14", "Marlow 15"]
    assert found["records"][0]["fields"] == {"paid": "no"}
    assert found["figures"] == [
        {"kind": "invoice", "unit": "EUR", "rows": 2, "values": 2, "sum": "0.30", "min": "0.10", "max": "0.20"}
    ]
    assert "0.30" in cli("record", "list").out
    assert cli("record", "log", "invoice", "x", "2026-02-01", "--field", "paid").code == 2


def test_a_thread_changes_its_status_only_on_what_was_said(cli: Cli) -> None:
    assert (
        cli("thread", "touch", "tax", "--title", "File the return", "--cadence", "3", "--json").data["outcome"]
        == "created"
    )
    refused = cli("thread", "touch", "tax", "--status", "done", "--expected-version", "1", "--json")
    assert (refused.code, refused.error["code"]) == (2, "refused")
    done = cli(
        "thread", "touch", "tax", "--status", "done", "--said", "it is filed", "--expected-version", "1", "--json"
    )
    assert done.data["row"]["status"] == "done"
    assert cli("thread", "list", "--json").data["threads"] == []
    [thread] = cli("thread", "list", "--status", "done", "--json").data["threads"]
    assert (thread["ref"], thread["quiet"]) == ("thread:tax", False)
    assert "File the return" in cli("thread", "list", "--status", "done").out


def test_pins_pages_and_rules_show_in_the_session_and_in_their_lists(cli: Cli) -> None:
    cli("pin", "set", "Draft sent.", "--scope", "lane:work", "--next", "Wait.")
    cli("wiki", "write", "Marlow", "--file", __file__, "--summary", "A client")
    rule = cli("constraint", "add", "Never mail on Sunday.", "--json").data["row"]
    start = cli("session").out
    for shown in ("Draft sent.", "Never mail on Sunday.", "wiki:marlow"):
        assert shown in start
    told = cli("session", "--json").data
    assert told["text"].splitlines()[1:] == start.splitlines()[1:]
    assert cli("session", "--as-of", told["as_of"], "--json").data == told
    assert cli("pin", "list", "--json").data["pins"][0]["ref"] == "pin:work"
    [page] = cli("wiki", "list", "--json").data["pages"]
    assert (page["ref"], page["summary"]) == ("wiki:marlow", "A client")
    assert "body" not in page
    retired = cli("constraint", "retire", rule["ref"], "--said", "Sunday is fine", "--json").data
    assert retired["row"]["status"] == "retired"
    assert cli("constraint", "list", "--json").data["constraints"] == []
    assert cli("wiki", "write", "x", "--file", "no-such-file").code == 2


def test_the_audit_lists_every_write_in_order_and_filters(cli: Cli) -> None:
    cli("remember", "A fact.", "--key", "a")
    cli("pin", "set", "A state.")
    cli("remember", "Another fact.", "--key", "a")
    cli("forget", "a", "--reason", "wrong", "--yes")
    writes = cli("audit", "--json").data["writes"]
    assert [(each["ref"].partition(":")[0], each["what"]) for each in writes] == [
        ("memory", "created"),
        ("pin", "created"),
        ("memory", "rewritten"),
        ("memory", "forgotten"),
    ]
    assert len(cli("audit", "--layer", "pin", "--json").data["writes"]) == 1
    assert len(cli("audit", "--ref", "a", "--json").data["writes"]) == 3
    assert len(cli("audit", "--client", "cli", "--json").data["writes"]) == 4
    assert cli("audit", "--client", "other", "--json").data["writes"] == []
    assert cli("audit", "--until", "2020-01-01", "--json").data["writes"] == []
    limited = json.loads(cli("audit", "--limit", "2", "--json").out)
    assert len(limited["data"]["writes"]) == 2
    assert limited["warnings"] == ["There are more; these are the oldest 2."]
    until = writes[2]["recorded_at"]
    assert len(cli("audit", "--as-of", until, "--json").data["writes"]) == 3


def test_the_digest_sums_up_a_period_and_is_the_same_every_time(cli: Cli) -> None:
    cli("remember", "A fact.", "--key", "a", "--known-at", "2026-01-05")
    cli("remember", "A later fact.", "--known-at", "2026-02-05")
    told = cli("digest", "--since", "2026-01-01", "--until", "2026-02-01", "--json").data
    assert "A fact." in told["markdown"]
    assert "A later fact." not in told["markdown"]
    assert cli("digest", "--since", "2026-01-01", "--until", "2026-02-01", "--json").data == told
    assert cli("digest", "--since", "2026-01-01", "--until", "2026-02-01").out.rstrip() == told["markdown"].rstrip()
    assert cli("digest", "--since", "tomorrow").code == 2


def test_scopes_are_listed_and_added_by_hand(cli: Cli) -> None:
    assert cli("remember", "x", "--scope", "lane:garden").code == 2
    assert cli("scope", "add", "lane:garden", "--json").data == {"scope": "lane:garden", "new": True}
    assert cli("scope", "add", "lane:Garden", "--json").data == {"scope": "lane:garden", "new": False}
    assert cli("remember", "The first tomato.", "--scope", "lane:garden").code == 0
    scopes = {each["scope"]: each["facts"] for each in cli("scope", "list", "--json").data["scopes"]}
    assert scopes["lane:garden"] == 1


def test_friction_is_listed_and_settled_by_a_human(cli: Cli, dsn: str) -> None:
    assert cli("friction", "list").out == "None.\n"
    assert cli("friction", "triage", "friction:none", "fixed").code == 3
    assert cli("friction", "list", "--status", "nonsense", "--json").error["code"] == "invalid_input"
    run(lambda: _log_friction(dsn))
    [entry] = cli("friction", "list", "--json").data["friction"]
    assert (entry["status"], entry["origin"]) == ("new", "model")
    assert "KeyError: 'lease'" in cli("friction", "list").out
    assert "KeyError: 'lease'" in cli("show", entry["ref"]).out
    settled = cli("friction", "triage", entry["ref"], "fixed", "--note", "Key renamed.", "--json").data["row"]
    assert (settled["status"], settled["note"], settled["origin"]) == ("fixed", "Key renamed.", "human")
    assert cli("friction", "list", "--json").data["friction"] == []
    assert len(cli("friction", "list", "--status", "all", "--json").data["friction"]) == 1
    assert [each["status"] for each in cli("history", entry["ref"], "--json").data["versions"]] == ["new", "fixed"]


async def _log_friction(dsn: str) -> None:
    model = open_brain(Settings(database_url=SecretStr(dsn)), origin="model")
    quoted = "Traceback: KeyError: 'lease' in line 3"
    await model.write(lambda work: friction.log(work, happened="It failed.", expected="A hit.", artifact=quoted))
    await model.close()


def test_namespaces_keep_apart_wherever_the_option_stands(cli: Cli) -> None:
    cli("--namespace", "one", "remember", "Only in one.", "--key", "k")
    assert cli("show", "k", "--namespace", "one").code == 0
    assert cli("show", "k").code == 3


def test_a_project_binds_reads_and_writes(cli: Cli) -> None:
    row = cli("remember", "In Kestrel.", "--project", "Kestrel", "--json").data["row"]
    assert (row["scope"], row["scope_id"]) == ("project", "kestrel")
    cli("remember", "In Osprey.", "--scope", "project:osprey")
    assert len(cli("trail", "--json").data["facts"]) == 2
    assert len(cli("trail", "--project", "kestrel", "--json").data["facts"]) == 1


def test_status_and_doctor_find_a_fresh_brain_well(cli: Cli) -> None:
    cli("remember", "A fact.")
    assert cli("status", "--json").data["visible_rows"]["memory"] == 1
    assert "memory rows" in cli("status").out
    found = cli("doctor", "--json")
    assert found.code == 0
    assert all(each["ok"] for each in found.data["checks"])
    assert "FAILED" not in cli("doctor").out


def test_migrate_goes_down_only_when_told_twice_and_up_again(cli: Cli) -> None:
    assert cli("migrate", "--json").data["applied"] == []
    assert cli("migrate", "--down-to", "9999").code == 2
    assert cli("migrate", "--down-to", "base").code == 2
    assert "0001" in cli("migrate", "--down-to", "base", "--yes", "--json").data["undone"]
    assert "0001" in cli("migrate", "--json").data["applied"]
    assert cli("status").code == 0


def test_what_is_not_foreseen_has_an_id_and_a_traceback_on_standard_error(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise KeyError("an inner secret")

    monkeypatch.setattr("brain.cli.process.service.overview", broken)
    failed = cli("status", "--json")
    assert (failed.code, failed.error["code"]) == (1, "internal")
    identifier = failed.error["message"].removeprefix("Internal error ").rstrip(".")
    assert f"internal error {identifier}" in failed.err
    assert "Traceback" in failed.err
    assert "secret" not in failed.out


@pytest.mark.parametrize("point", [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x202E, 0x2066])
def test_no_control_character_is_visible(point: int) -> None:
    assert visible(f"a{chr(point)}b") == "a\ufffdb"


def test_line_breaks_and_tabs_stay_and_a_cell_is_one_line() -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert cell("a\nb\u2028c") == "a b c"
    assert [cell(value) for value in (None, True, False, 3)] == ["", "yes", "no", "3"]
