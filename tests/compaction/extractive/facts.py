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

BACKGROUND = (
    "So here is the background. We inherited this from a contractor, and frankly it has been a "
    "bit of a mess ever since; the team in Lyon keeps the lights on. The thing listens on 9443 "
    "and talks to a Redis at cache-7.internal:6380. "
    "What bothers me most is that retries hammer the upstream, so cap them at four with jitter. "
    "Oh, and Delphine (delphine.r@example.org) must sign off on anything that touches pricing. "
    "I know it is tempting, yet the module pricing/core stays frozen until the audit on 30 June "
    "is over."
)
CHECKOUT: tuple[Fact, ...] = (
    Fact(
        BACKGROUND,
        (
            "9443",
            "cache-7.internal:6380",
            "four with jitter",
            "delphine.r@example.org",
            "pricing/core",
            "30 June",
        ),
    ),
    Fact(
        "这个项目是给杭州客户做的,验收标准写在 docs/acceptance_v4.xlsx 里,第 17 条不能改。",
        ("docs/acceptance_v4.xlsx", "第 17 条不能改"),
    ),
    Fact("Tabs, not spaces.", ("Tabs, not spaces",)),
    Fact("Commit under the name Robo Build <robo@ex.org>.", ("Robo Build", "robo@ex.org")),
    Fact("k8s namespace = payments-eu, context = blue", ("payments-eu", "blue")),
    Fact("I'd rather have ten small pull requests than a big one.", ("ten small pull requests",)),
    Fact("No need to support Safari 14 any longer.", ("Safari 14",)),
    Fact(
        "Telemetry is off limits until legal has answered ticket LGL-88.", ("Telemetry", "LGL-88")
    ),
    Fact("用户表里的手机号一律脱敏,只留后四位。", ("脱敏", "后四位")),
    Fact(
        "测试账号 qa_robot,密码在 1Password 里,别写进代码。",
        ("qa_robot", "1Password", "别写进代码"),
    ),
    Fact("回复我用中文,代码注释用英文。", ("回复我用中文", "代码注释用英文")),
    Fact("every SQL statement gets a statement_timeout of 4s", ("statement_timeout", "4s")),
    Fact("Stop using the word 'blacklist' in code; say denylist.", ("denylist",)),
    Fact("TLS 1.2 is the floor.", ("TLS 1.2",)),
    Fact(
        "We agreed with Kofi that the cutover is on the 3rd at 05:30 UTC.",
        ("Kofi", "05:30 UTC", "the 3rd"),
    ),
    Fact("Wait for the green light from ops-bridge before any restart!", ("ops-bridge", "restart")),
    Fact("The mobile team depends on header X-Trace-Seed, keep it.", ("X-Trace-Seed",)),
    Fact("File names: kebab-case.md for docs.", ("kebab-case.md",)),
    Fact("Anything over 2 GB goes to cold storage, bucket frost-01.", ("2 GB", "frost-01")),
    Fact(
        "For now I only care about correctness. Speed comes later.",
        ("only care about correctness", "Speed comes later"),
    ),
    Fact("The customer number is 0049-7731-22.", ("0049-7731-22",)),
    Fact("用 Postgres 15,不要升级到 16。", ("Postgres 15", "不要升级到 16")),
    Fact("先做登录页,支付页放到下周。", ("先做登录页", "支付页放到下周")),
    Fact("La palabra 'usuario' va siempre en minúsculas.", ("minúsculas",)),
    Fact(
        "I chose to keep the v1 endpoints as thin shims over v2, removal planned for release 9.0.",
        ("thin shims", "release 9.0"),
        "assistant",
    ),
    Fact(
        "It turns out that ETag handling breaks when the proxy adds W/ prefixes.",
        ("ETag", "W/"),
        "assistant",
    ),
    Fact(
        "方案定了:消息队列用 NATS JetStream,主题前缀 pay.evt。",
        ("NATS JetStream", "pay.evt"),
        "assistant",
    ),
    Fact(
        "Heap peaked at 3.7 GiB with 512 workers; with 96 it stays at 0.9 GiB.",
        ("3.7 GiB", "512 workers", "0.9 GiB"),
        "assistant",
    ),
    Fact(
        "We now have 14 flaky tests quarantined in tests/quarantine.toml.",
        ("14 flaky", "tests/quarantine.toml"),
        "assistant",
    ),
    Fact(
        "deployment/checkout-7c9f  image=reg.local/checkout:2026.03.1-rc4  restarts=17",
        ("checkout:2026.03.1-rc4", "17"),
        "tool",
    ),
    Fact(
        '  "subscription": "sub_1QmZ", "renews_on": "2026-11-05", "seats": 38,',
        ("sub_1QmZ", "2026-11-05", "38"),
        "tool",
    ),
    Fact(
        "ERR-50412 upstream 10.20.3.9 refused: quota 8000/min exceeded",
        ("ERR-50412", "10.20.3.9", "8000/min"),
        "tool",
    ),
    Fact("The SLA is 99.5%.", ()),
    Fact("They renegotiated: the SLA is 99.9% from now on.", ("99.9%",), lost=("99.5%",)),
    Fact("Nightly job at 01:15.", ()),
    Fact("Shift the nightly job to 03:45, the backup collides.", ("03:45",), lost=("01:15",)),
    Fact("Send the weekly digest to ops@ex.org.", ()),
    Fact(
        "The weekly digest should go to sre@ex.org rather than ops.",
        ("sre@ex.org",),
        lost=("ops@ex.org",),
    ),
    Fact("单个文件不超过 5MB。", ()),
    Fact("文件上限放宽到 8MB。", ("8MB",), lost=("5MB",)),
    Fact("Colour for warnings: #ffaa00.", ()),
    Fact("Make the warnings #cc3300 instead.", ("#cc3300",), lost=("#ffaa00",)),
    Fact("Retention: six months.", ()),
    Fact("On reflection: nine months of retention.", ("nine months",)),
    Fact("Don't add dependencies.", ("Don't add dependencies",)),
    Fact("One exception to that: httpx 0.27 is fine.", ("httpx 0.27",)),
    Fact(
        "Eventually we'll need a German translation of help.md, don't let me forget.",
        ("German translation", "help.md"),
    ),
    Fact("If the queue is longer than 900, page Marguerite.", ("900", "Marguerite")),
    Fact(
        "Every endpoint answers in snake_case JSON apart from /legacy/*.",
        ("snake_case JSON", "/legacy/*"),
    ),
    Fact("Leave TODO comments out.", ("TODO comments",)),
)

# What a user says between two compactions; later rounds correct what earlier ones said.
ROUND_BY_ROUND: tuple[tuple[str, ...], ...] = (
    (
        "The release train leaves every other Thursday at 16:00 CET.",
        "Our licence key is LK-77AA-0193-QZ.",
        "Anyone but Sofia is barred from editing rates.yml.",
        "We ship to Norway, Iceland and Malta only.",
        "Passwords are hashed with argon2id, m=64MB, t=3.",
        "界面语言默认是繁体中文。",
        "发票抬头:上海云舟科技有限公司。",
        "严禁在生产库上执行 DELETE。",
        "Put screenshots under media/2026/q2, never inline.",
        "The maximum payload is 6 MB.",
        "Session cookies live for 12 hours.",
        "Deadline: 2026-08-31.",
        "Please look into why exports hang for tenant 5531.",
        "API-Antworten immer auf Englisch.",
        "Don't rename public methods without asking me.",
    ),
    (
        "From now on the maximum payload is 9 MB.",
        "Tenant 5531 is fixed; tenant 6120 still hangs, get to it after the release.",
        "The design file lives at figma.com/file/Xk29/checkout.",
        "如果接口超过 800 毫秒就报警给陈涛。",
        "Use feature branch feat/split-ledger.",
        "Numbers are formatted like 1 234,56 in the UI.",
        "Error pages carry the code E-417.",
        "I can't stand modal dialogs.",
    ),
    (
        "Deadline was pushed: it is 2026-09-15 now.",
        "Cookies: make them live for 8 hours instead.",
        "Sofia left; Hamid may edit rates.yml now, nobody else.",
        "Store phone numbers in E.164.",
        "每周五下午三点开评审会。",
        "The canary gets 5% of traffic.",
    ),
    (
        "Canary: raise it to 12% of traffic.",
        "评审会改到周四下午两点。",
        "Skip the Windows build.",
        "Backups land in s3://bk-eu-2/nightly.",
        "Anything from vendor Qorvex needs a second pair of eyes.",
    ),
    (
        "What is left: the Maltese VAT rule and the dark theme.",
        "For Iceland shipping is free above 75 EUR.",
    ),
)

HELD = (
    "Thursday at 16:00 CET",
    "LK-77AA-0193-QZ",
    "rates.yml",
    "Norway, Iceland and Malta",
    "argon2id, m=64MB, t=3",
    "繁体中文",
    "上海云舟科技有限公司",
    "严禁在生产库上执行 DELETE",
    "media/2026/q2",
    "auf Englisch",
    "rename public methods",
    "9 MB",
    "6120",
    "figma.com/file/Xk29/checkout",
    "800 毫秒",
    "陈涛",
    "feat/split-ledger",
    "1 234,56",
    "E-417",
    "modal dialogs",
    "2026-09-15",
    "8 hours",
    "Hamid",
    "E.164",
    "12%",
    "周四下午两点",
    "Windows build",
    "s3://bk-eu-2/nightly",
    "Qorvex",
    "Maltese VAT rule",
    "dark theme",
    "75 EUR",
)
TAKEN_BACK = (
    "6 MB",
    "12 hours",
    "2026-08-31",
    "5%",
)

ERRANDS: tuple[Fact, ...] = (
    Fact(
        "btw the guy from Basel, Reto Imhof, wants a copy of every invoice above 10k",
        ("Reto Imhof", "10k"),
    ),
    Fact("no mocks pls", ("no mocks",)),
    Fact(
        "pls hold off on the refactor of scheduler.go till I'm back on the 22nd",
        ("scheduler.go", "22nd"),
    ),
    Fact(
        "Whenever you name a migration: YYYYMMDDHHMM_verb_noun.sql", ("YYYYMMDDHHMM_verb_noun.sql",)
    ),
    Fact("The answer must be readable by a ten-year-old.", ("ten-year-old",)),
    Fact("Our cluster runs k3s 1.29, don't assume anything newer.", ("k3s 1.29",)),
    Fact("图片宽度统一 1280 像素。", ("1280 像素",)),
    Fact("凡是涉及支付的改动都要先给老周看。", ("支付", "老周")),
    Fact("临时文件放 /scratch/ctx,跑完删掉。", ("/scratch/ctx", "跑完删掉")),
    Fact("别用 emoji。", ("别用 emoji",)),
    Fact("数据库密码每 45 天换一次。", ()),
    Fact(
        "密码更换周期缩短到 30 天。",
        ("30 天",),
    ),
    Fact("Thresholds: warn 70, crit 90.", ("warn 70", "crit 90")),
    Fact("GPU box: ssh ml@172.16.4.20 -p 2222", ("ml@172.16.4.20", "2222")),
    Fact("I'm colour-blind, so no red/green pairs in charts.", ("colour-blind", "red/green")),
    Fact("Merge freeze until Monday 7 a.m.!", ("Merge freeze", "Monday 7 a.m.")),
    Fact("The contract number is C/2026/118-B.", ("C/2026/118-B",)),
    Fact("Treat warnings as errors", ("warnings as errors",)),
    Fact("Rollback = helm rollback pay 41", ("helm rollback pay 41",)),
    Fact(
        "Only the EU tenants get the beta: acme-fr, lund-se, kova-cz.",
        ("acme-fr", "lund-se", "kova-cz"),
    ),
    Fact("As for licences, nothing GPL.", ("nothing GPL",)),
    Fact("Let p95 be the yardstick, not the mean.", ("p95", "not the mean")),
    Fact("What we need in the end: one PDF, A4, under 4 MB.", ("A4", "under 4 MB")),
    Fact("Sort by surname, then by birth year.", ("surname", "birth year")),
    Fact("Het rapport moet vóór 1 juli klaar zijn.", ("1 juli",)),
    Fact("Nunca borres la carpeta histórico.", ("carpeta histórico",)),
    Fact("コミット前に必ずテストを実行すること。", ("必ずテストを実行",)),
    Fact(
        "We dropped GraphQL in favour of plain REST; the gateway keeps both until build 880.",
        ("plain REST", "build 880"),
        "assistant",
    ),
    Fact(
        "Agreed: the importer is idempotent on external_ref.",
        ("idempotent", "external_ref"),
        "assistant",
    ),
    Fact("性能瓶颈在序列化,占 62% 的时间。", ("序列化", "62%"), "assistant"),
    Fact(
        "region eu-north-1 | cost 1,284.77 | owner team-fjord",
        ("1,284.77", "team-fjord", "eu-north-1"),
        "tool",
    ),
    Fact("Rate limit: 50 per second.", ()),
    Fact("Bump the rate limit to 120 per second.", ("120 per second",), lost=("50 per",)),
    Fact("My address is Rua Augusta 812, São Paulo.", ("Rua Augusta 812",)),
    Fact("Never, ever, email customers from this sandbox.", ("email customers", "sandbox")),
    Fact("The logo goes top left, 48px.", ("top left", "48px")),
    Fact(
        "First thing tomorrow: renew the wildcard cert (expires 2026-06-02).",
        ("wildcard cert", "2026-06-02"),
    ),
    Fact("Do it like in PR #3312.", ("#3312",)),
)

NOVEL: tuple[Fact, ...] = (
    Fact(
        "Kindly leave chapter 3 as it stands; the publisher signed it off.",
        ("chapter 3", "publisher signed it off"),
    ),
    Fact("British spelling, Oxford comma.", ("British spelling", "Oxford comma")),
    Fact("The heroine is called Ilse Varga, 37, a notary in Pécs.", ("Ilse Varga", "37", "Pécs")),
    Fact("No chapter may run past 4,200 words.", ("4,200 words",)),
    Fact("I write in the mornings, so send drafts by 6:30.", ("6:30",)),
    Fact("Quote law texts verbatim, e.g. § 14 Abs. 2 BauGB.", ("§ 14 Abs. 2 BauGB", "verbatim")),
    Fact("the folder /mnt/archive is read-only for a reason", ("/mnt/archive", "read-only")),
    Fact(
        "We're called Nordlicht gGmbH on paper and Nordlicht everywhere else.",
        ("Nordlicht gGmbH", "everywhere else"),
    ),
    Fact("Bibliography style: Chicago 17B.", ("Chicago 17B",)),
    Fact("Advance copies: 25.", ()),
    Fact("Advance copies: make that 40.", ("40",), lost=("25.",)),
    Fact("小说名暂定《回声谷》。", ("回声谷",)),
    Fact("第三人称,过去时,不要用感叹号。", ("第三人称", "过去时", "不要用感叹号")),
    Fact("每章结尾留一个悬念。", ("悬念",)),
    Fact("交稿日期是 2026 年 10 月 8 日。", ("10 月 8 日",)),
    Fact("引文出处放在脚注,不放正文。", ("脚注", "不放正文")),
    Fact("Whoever edits must track changes.", ("track changes",)),
    Fact(
        "Chapter order is fixed: Harbour, Ledger, Frost, Return.",
        ("Harbour, Ledger, Frost, Return",),
    ),
    Fact("Cut adverbs wherever you can", ("Cut adverbs",)),
    Fact("My editor Tomé dislikes semicolons.", ("Tomé", "semicolons")),
    Fact("ISBN is 978-3-16-148410-0.", ("978-3-16-148410-0",)),
    Fact("Export as EPUB 3.3 plus a PDF with 5 mm bleed.", ("EPUB 3.3", "5 mm bleed")),
    Fact("Don't you dare delete the old drafts.", ("old drafts",)),
    Fact(
        "Someone still has to clear the lyrics on page 212 with the rights holder.",
        ("lyrics", "page 212"),
    ),
    Fact(
        "I moved the notary scene from ch. 5 to ch. 2, since Frost needs the setup.",
        ("notary scene", "ch. 2"),
        "assistant",
    ),
    Fact(
        "The timeline only works if the fire is on 12 February 1987.",
        ("12 February 1987",),
        "assistant",
    ),
    Fact("word_count=81204 chapters=19 longest=ch7:5031", ("81204", "ch7:5031"), "tool"),
    Fact(
        "licence 77-B | Musikverlag Orion | fee 340 EUR | until 2027",
        ("77-B", "Musikverlag Orion", "340 EUR"),
        "tool",
    ),
    Fact("Dedication: for Mirjam.", ("for Mirjam",)),
    Fact("Ensimmäinen luku jää ennalleen.", ("Ensimmäinen luku",)),
    Fact("Titel bleibt unter 30 Zeichen.", ("30 Zeichen",)),
)
