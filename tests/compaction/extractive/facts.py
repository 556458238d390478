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

PIPELINE: tuple[Fact, ...] = (
    Fact(
        "We're rebuilding the churn model pipeline; the deliverable is a nightly job called "
        "churn-scorer that writes to bucket gs://acme-ml-prod/churn/v3.",
        ("churn-scorer", "gs://acme-ml-prod/churn/v3"),
    ),
    Fact(
        "Under no circumstances may raw email addresses end up in the feature table.",
        ("raw email addresses", "feature table", "no circumstances"),
    ),
    Fact("Seed everything with 1337 so that Priya can reproduce it.", ("1337", "Priya")),
    Fact(
        "Whatever you do, the schema of events_v2 stays as it is.", ("events_v2", "stays as it is")
    ),
    Fact("My budget for BigQuery is 40 dollars a day.", ("40 dollars a day", "BigQuery")),
    Fact("For plots, matplotlib over plotly any day.", ("matplotlib over plotly",)),
    Fact("模型的 AUC 低于 0.82 就不许上线。", ("0.82", "不许上线")),
    Fact("训练数据从 2024-07-01 算起,之前的数据全部丢弃。", ("2024-07-01", "丢弃")),
    Fact("联系人是数据组的周敏,工号 E20418。", ("周敏", "E20418")),
    Fact(
        "Python stays on 3.11.9; the cluster image has nothing newer.", ("3.11.9", "cluster image")
    ),
    Fact(
        "I went with LightGBM over XGBoost: it trains in 6 minutes where the other takes 41.",
        ("LightGBM over XGBoost", "6 minutes"),
        "assistant",
    ),
    Fact(
        "Nulls in tenure_days are encoded as -1, since the tree handles that natively.",
        ("tenure_days", "-1"),
        "assistant",
    ),
    Fact(
        "The discrepancy of 1,204 rows comes from duplicated device ids in the March export.",
        ("1,204", "March export"),
        "assistant",
    ),
    Fact(
        "dataset snapshot: snap-20260311-b rows=8,412,007 sha=9f3c2ab1",
        ("snap-20260311-b", "8,412,007", "9f3c2ab1"),
        "tool",
    ),
    Fact(
        '{"job_id": "jb_55120", "queue": "gpu-low", "eta": "2026-03-19T04:00Z"}',
        ("jb_55120", "gpu-low"),
        "tool",
    ),
    Fact("Alerts go to #churn-oncall and nowhere else.", ("#churn-oncall", "nowhere else")),
    Fact("The holdout share should be 15 percent.", ("holdout share",)),
    Fact("Make the holdout share 20 percent after all.", ("20 percent",), lost=("15 percent",)),
    Fact("Retry failed partitions up to 5 times.", ("failed partitions",)),
    Fact("Retries for failed partitions: change that to 2 times.", ("2 times",), lost=("5 times",)),
    Fact("阈值先设成 0.45。", ()),
    Fact("阈值改为 0.52 吧。", ("0.52",), lost=("0.45",)),
    Fact(
        "Once the backfill is through, somebody must drop the table tmp_churn_backfill; please do.",
        ("tmp_churn_backfill", "backfill is through"),
    ),
    Fact("Le tableau de bord doit rester en français.", ("rester en français",)),
    Fact("ログはJSON形式で出力してください。", ("ログはJSON形式",)),
    Fact(
        "Two reviewers, Tomasz and Ifeoma, have to approve before anything merges.",
        ("Tomasz", "Ifeoma", "approve"),
    ),
    Fact(
        "Column names: snake_case throughout, and no abbreviations.",
        ("snake_case", "no abbreviations"),
    ),
    Fact(
        "You can reach the feature store with `fsctl --env=qa --ns churn`.",
        ("fsctl --env=qa --ns churn",),
    ),
    Fact("Nothing runs on weekends.", ("Nothing runs on weekends",)),
    Fact("I hate emojis in logs.", ("hate emojis",)),
)

JOURNEY: tuple[Fact, ...] = (
    Fact(
        "Hi! I'm helping Mrs. Okonkwo-Hale, booking reference QX7T2P, she flies with two children.",
        ("Okonkwo-Hale", "QX7T2P", "two children"),
    ),
    Fact(
        "She refuses any connection through Frankfurt.",
        ("refuses any connection through Frankfurt",),
    ),
    Fact("Spend 1,850 GBP tops.", ("1,850 GBP tops",)),
    Fact("Aisle seats are what she likes; windows make her dizzy.", ("Aisle seats", "dizzy")),
    Fact("She's allergic to sesame, that has to be on every leg.", ("sesame", "every leg")),
    Fact(
        "Her passport number is 533091827 and it runs out on 9 August 2027.",
        ("533091827", "9 August 2027"),
    ),
    Fact("Return flight: the 14th of May.", ()),
    Fact("Sorry, I meant the 16th of May for the return flight.", ("16th of May",), lost=("14th",)),
    Fact("酒店必须离地铁站不到五百米。", ("酒店", "地铁站", "五百米")),
    Fact("预算是每晚 900 元。", ()),
    Fact("预算提高到每晚 1200 元。", ("1200 元",), lost=("900",)),
    Fact("如果退款失败,打 400-820-8820 找李经理。", ("400-820-8820", "李经理")),
    Fact("不吃猪肉,也不喝酒。", ("不吃猪肉", "不喝酒")),
    Fact(
        "I booked BA1442 in the fare class K, which allows one free change.",
        ("BA1442", "one free change"),
        "assistant",
    ),
    Fact("我确认了:行李额度是每人 23 公斤。", ("23 公斤",), "assistant"),
    Fact(
        "Fare rules KX-771: non-refundable, change fee 85 GBP, valid until 2026-12-31",
        ("KX-771", "85 GBP", "2026-12-31"),
        "tool",
    ),
    Fact("voucher=VCH-00931 amount=120.00 holder=OKONKWO", ("VCH-00931", "120.00"), "tool"),
    Fact(
        "Don't call her, she only answers e-mail: n.okonkwo@hale.example",
        ("n.okonkwo@hale.example", "Don't call her"),
    ),
    Fact(
        "The insurance thing can wait, but we do have to come back to it.",
        ("insurance", "come back to it"),
    ),
    Fact("Check-in opens 36 hours ahead, remind me then.", ("36 hours", "remind me")),
    Fact("Ask before paying anything.", ("Ask before paying anything",)),
    Fact(
        "Wheelchair assistance at LHR terminal 5, not at the destination.",
        ("Wheelchair", "LHR terminal 5", "not at the destination"),
    ),
    Fact(
        "One more thing - invoices are made out to Hale & Partners LLP, VAT GB 418 2207 91.",
        ("Hale & Partners LLP", "GB 418 2207 91"),
    ),
    Fact("把确认信抄送给 wang.fang@corp.example。", ("wang.fang@corp.example", "抄送")),
    Fact("El niño menor tiene 4 años.", ("4 años",)),
    Fact("Кресло для ребёнка обязательно.", ("Кресло для ребёнка",)),
    Fact("반드시 조식 포함으로 예약해 주세요.", ("조식 포함",)),
    Fact("They pay by bank transfer; cards are out.", ("bank transfer", "cards are out")),
    Fact(
        "Upgrade to premium economy is fine if it costs less than 200 extra.",
        ("premium economy", "200 extra"),
    ),
)
