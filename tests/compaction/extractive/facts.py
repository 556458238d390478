"""What was said in the sessions of the tests, in many wordings and three languages."""

from __future__ import annotations

from tests.compaction.extractive.sessions import Fact

MIGRATION: tuple[Fact, ...] = (
    Fact(
        "Migrate the billing service from MySQL 5.7 to PostgreSQL 16 without downtime.",
        ("MySQL 5.7", "PostgreSQL 16", "downtime"),
    ),
    Fact("Never touch anything below infra/terraform/prod.", ("infra/terraform/prod", "Never")),
    Fact(
        "I'd like commit messages in the imperative, at most 60 characters.",
        ("imperative", "60 characters"),
    ),
    Fact(
        "The staging host is stg-db-03.corp.internal, port 6432.",
        ("stg-db-03.corp.internal", "6432"),
    ),
    Fact("Ana Beltrán from finance signs off the reports.", ("Ana Beltrán", "signs off")),
    Fact("不要动 legacy 目录下的任何文件。", ("不要动 legacy 目录",)),
    Fact("日志最多保留 7 天,超过的要自动删除。", ("自动删除",)),
    Fact("发布时间定在 2026-04-18 晚上十点。", ("2026-04-18", "晚上十点")),
    Fact("我更喜欢用 pnpm,别用 npm。", ("pnpm", "别用 npm")),
    Fact("Order A-99812 belongs to customer cus_7Hq2LmX.", ("A-99812", "cus_7Hq2LmX"), "tool"),
    Fact(
        "Invoice total: 4,310.50 EUR, due 2026-05-02, ref INV-20391",
        ("INV-20391", "4,310.50", "2026-05-02"),
        "tool",
    ),
    Fact(
        "I have settled on event sourcing for the ledger, because replays are cheap.",
        ("event sourcing", "ledger"),
        "assistant",
    ),
    Fact(
        "Root cause: the connection pool of 20 is exhausted by the nightly job at 02:30.",
        ("20", "02:30", "nightly job"),
        "assistant",
    ),
    Fact(
        "Run `make verify-all SHARD=4` before each push.",
        ("make verify-all SHARD=4", "before each push"),
    ),
    Fact(
        "The API must answer within 250 ms at the 99th percentile.", ("250 ms", "99th percentile")
    ),
    Fact(
        "Use port 8080 for the preview server and bind it to localhost only.",
        ("preview server", "localhost only"),
    ),
    Fact(
        "Hands off the tests in spec/contract, they belong to the partner team.",
        ("spec/contract", "partner team"),
    ),
    Fact("其实改成 3 天。", ("3 天",), lost=("7 天",)),
    Fact("Actually, use port 8081 for the preview server instead.", ("8081",), lost=("8080",)),
    Fact(
        "When you are done with the migration, write the runbook to docs/runbook-billing.md.",
        ("docs/runbook-billing.md", "runbook"),
    ),
    Fact("文件编码统一为 UTF-8,换行用 LF。", ("UTF-8", "LF")),
    Fact(
        "The feature flag is called billing.v2_enabled and stays off until QA says so.",
        ("billing.v2_enabled", "off until QA"),
    ),
    Fact("We pay in CHF, not in EUR.", ("CHF, not in EUR",)),
    Fact("Kein Deployment am Freitag, bitte immer erst Jonas fragen.", ("Freitag", "Jonas")),
)
