"""What each dashboard shows. Every expression is run against a system by the end-to-end tests, and must have data."""

from __future__ import annotations

from deploy.dashboards.panels import Dashboard, Panel, number, plot


def rate(metric: str, by: str = "") -> str:
    summed = f"sum by ({by})" if by else "sum"
    return f"{summed} (rate({metric}[5m]))"


def quantile(q: float, metric: str) -> str:
    return f"histogram_quantile({q}, sum by (le) (rate({metric}_bucket[5m])))"


def of_service(expr: str, service: str = "stairwise-.+") -> str:
    """A figure of processes, with the name of the service that each is of."""
    info = f'max by (job, instance, service_name) (target_info{{service_name=~"{service}"}})'
    return f"sum by (service_name, instance) ({expr} * on (job, instance) group_left (service_name) {info})"


def processes(service: str = "stairwise-.+") -> tuple[Panel, Panel]:
    return (
        plot(
            "Memory",
            "Resident memory of each process.",
            (of_service("process_resident_memory_bytes", service), "{{service_name}} {{instance}}"),
            unit="bytes",
        ),
        plot(
            "CPU",
            "Cores that each process uses. Spark's JVM and Python workers are processes of their own and not in it.",
            (of_service("rate(process_cpu_seconds_total[5m])", service), "{{service_name}} {{instance}}"),
        ),
    )


WATERMARK_LAG = plot(
    "Event time behind the clock",
    "How far the clock is ahead of each stream's slowest partition: reports are at least so old. Of replayed history it"
    " says how old that is.",
    ("max by (stream) (stairwise_ingest_watermark_lag_seconds)", "{{stream}}"),
    unit="s",
)
INGEST_LAG = plot(
    "Messages that wait for ingest",
    "Behind the last message that was written, by stream.",
    ("sum by (stream) (stairwise_ingest_lag)", "{{stream}}"),
)
OPERATORS_LAG = plot(
    "Batches that wait for operators",
    "Messages of s.* that the last micro-batch left, by stream.",
    ("sum by (stream) (stairwise_operators_lag)", "{{stream}}"),
)
ROWS = plot(
    "Rows",
    "Rows a second by what became of them: on time, late, dead.",
    (rate("stairwise_ingest_rows_total", "outcome"), "{{outcome}}"),
    unit="rowsps",
)
REPORTS = plot(
    "Reports",
    "Reports a second that results has released: all shards have written them.",
    (rate("stairwise_results_reports_total"), "released"),
)

OVERVIEW = Dashboard(
    "overview",
    "Overview",
    [
        number("Queries", "Registered queries.", "sum(stairwise_windows_queries)"),
        number("Streams", "Declared streams.", "sum(stairwise_windows_streams)"),
        number("Subscriptions", "That are served now.", "sum(stairwise_results_subscriptions)"),
        ROWS,
        REPORTS,
        WATERMARK_LAG,
        INGEST_LAG,
        OPERATORS_LAG,
        plot(
            "Processes",
            "That Prometheus reaches, by service.",
            ('count by (service_name) (target_info{service_namespace="stairwise"})', "{{service_name}}"),
        ),
        *processes(),
    ],
)

INGEST = Dashboard(
    "ingest",
    "Ingest",
    [
        ROWS,
        plot(
            "Rows by stream",
            "Rows a second that were read.",
            (rate("stairwise_ingest_rows_in_total", "stream"), "{{stream}}"),
            unit="rowsps",
        ),
        INGEST_LAG,
        WATERMARK_LAG,
        plot(
            "Partitions apart",
            "Between the fastest and the slowest partition of a stream, in event time: the fast ones wait so long.",
            (
                "(max by (stream) (stairwise_ingest_watermark_milliseconds)"
                " - min by (stream) (stairwise_ingest_watermark_milliseconds)) / 1000",
                "{{stream}}",
            ),
            unit="s",
        ),
        plot(
            "Rows of a batch",
            "The larger, the cheaper is everything downstream.",
            (quantile(0.5, "stairwise_ingest_batch_rows"), "median"),
            (quantile(0.99, "stairwise_ingest_batch_rows"), "p99"),
        ),
        plot(
            "Duration of a transaction",
            "From begin to commit.",
            (quantile(0.5, "stairwise_ingest_transaction_duration_seconds"), "median"),
            (quantile(0.99, "stairwise_ingest_transaction_duration_seconds"), "p99"),
            unit="s",
        ),
        plot(
            "Transactions",
            "A second: written, and taken back.",
            (rate("stairwise_ingest_transaction_duration_seconds_count"), "written"),
            (rate("stairwise_ingest_transactions_aborted_total"), "taken back"),
        ),
        *processes("stairwise-ingest"),
    ],
)

OPERATORS = Dashboard(
    "operators",
    "Operators",
    [
        plot(
            "Duration of a micro-batch",
            "From trigger to commit: reports wait about that long.",
            (quantile(0.5, "stairwise_operators_batch_duration_seconds"), "median"),
            (quantile(0.99, "stairwise_operators_batch_duration_seconds"), "p99"),
            unit="s",
        ),
        plot(
            "Where the time goes",
            "Seconds a second in each phase of micro-batches; addBatch is the work itself.",
            (rate("stairwise_operators_phase_time_seconds_total", "phase"), "{{phase}}"),
            unit="s",
        ),
        OPERATORS_LAG,
        plot(
            "Through the pipeline",
            "A second: micro-batches, messages of s.* in, reports out.",
            (rate("stairwise_operators_batches_total"), "micro-batches"),
            (rate("stairwise_operators_messages_total"), "messages in"),
            (rate("stairwise_operators_reports_total"), "reports out"),
        ),
        plot("Pages of state", "In Spark's state store.", ("sum(stairwise_operators_state_pages)", "pages")),
        plot(
            "Size of the state",
            "The memory of RocksDB, as it tells it, and the files of large pages.",
            ("sum(stairwise_operators_state_size_bytes)", "memory of RocksDB"),
            ("sum(stairwise_operators_state_segments_bytes)", "files"),
            unit="bytes",
        ),
        plot(
            "Heap",
            "Of Spark's driver, where in local mode everything runs.",
            ('jvm_memory_used_bytes{jvm_memory_type="heap"}', "used"),
            ('jvm_memory_limit_bytes{jvm_memory_type="heap"}', "limit"),
            unit="bytes",
        ),
        plot(
            "Volume of the checkpoint",
            "How full it is.",
            (
                'stairwise_operators_volume_bytes{state="used"}'
                " / ignoring (state) sum without (state) (stairwise_operators_volume_bytes)",
                "used",
            ),
            unit="percentunit",
        ),
        *processes("stairwise-operators"),
    ],
)

RESULTS = Dashboard(
    "results",
    "Results",
    [
        REPORTS,
        plot(
            "Updates",
            "Messages a second to subscribers.",
            (rate("stairwise_results_updates_total"), "updates"),
        ),
        plot(
            "Subscriptions",
            "That are served now, by replica; each takes STAIRWISE_RESULTS_SUBSCRIPTIONS.",
            ("sum by (instance) (stairwise_results_subscriptions)", "{{instance}}"),
        ),
        plot(
            "Repeats",
            "Messages a second that repeat a report: Spark tried a micro-batch again. Nobody sees them.",
            (rate("stairwise_results_repeats_total"), "dropped"),
        ),
        *processes("stairwise-results"),
    ],
)

LOOKUPS = Dashboard(
    "lookups",
    "Lookups",
    [
        plot(
            "Rows taken in",
            "A second, by stream.",
            (rate("stairwise_lookups_rows_total", "stream"), "{{stream}}"),
            unit="rowsps",
        ),
        plot(
            "Batches",
            "A second: taken, or passed over because they were there already.",
            (rate("stairwise_lookups_batches_total", "outcome"), "{{outcome}}"),
        ),
        plot(
            "Partitions",
            "Held by all workers: ready to answer, or still being read again.",
            ("sum by (state) (stairwise_lookups_partitions)", "{{state}}"),
        ),
        plot(
            "Behind ingest",
            "In event time: what ingest has passed and lookups not yet.",
            (
                "max by (stream) (stairwise_ingest_watermark_milliseconds / 1000"
                " - on (stream, partition) group_left ()"
                " max by (stream, partition) (stairwise_lookups_watermark_seconds))",
                "{{stream}}",
            ),
            unit="s",
        ),
        plot(
            "Rebalances",
            "In the last hour: each makes what moves unavailable for a second or two.",
            ("sum by (instance) (increase(stairwise_lookups_rebalances_total[1h]))", "{{instance}}"),
        ),
        *processes("stairwise-lookups"),
    ],
)

SHARING = Dashboard(
    "sharing",
    "Sharing",
    [
        number(
            "Queries per stair",
            "What sharing saves: so many queries for the price of one walk.",
            'sum(stairwise_windows_queries{sharing="stair"}) / sum(stairwise_windows_stairs)',
        ),
        number("Widest stair", "The most queries on one.", "max(stairwise_windows_stair_queries_max)"),
        number("Plan version", "The newest.", "max(stairwise_windows_plan_version)"),
        plot(
            "Queries",
            "On a stair with others of their signature, or alone since their kind has no shared form.",
            ("sum by (sharing) (stairwise_windows_queries)", "{{sharing}}"),
        ),
        plot(
            "Stairs, groups, steps",
            "Signatures; chains of nested windows in them; windows that hold state. Other windows ride along.",
            ("sum(stairwise_windows_stairs)", "stairs"),
            ("sum(stairwise_windows_groups)", "groups"),
            ("sum(stairwise_windows_steps)", "steps"),
        ),
        plot(
            "Changes of plan",
            "Versions a second that were written.",
            (rate("stairwise_windows_versions_total"), "versions"),
        ),
    ],
)

DASHBOARDS = (OVERVIEW, INGEST, OPERATORS, RESULTS, LOOKUPS, SHARING)
