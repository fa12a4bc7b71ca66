"""The Python client: declare, publish, subscribe, look up.

```python
from stairwise.client import Client

with Client.connect() as client:
    client.execute("CREATE STREAM trades (ts TIMESTAMP, ticker STRING, qty BIGINT) TIMESTAMP BY ts;")
    client.execute("CREATE QUERY sums AS SELECT ticker, SUM(qty) FROM trades [TUMBLE 10s] GROUP BY ticker;")
    client.publish("trades", [{"ts": 1700000000000, "ticker": "AB", "qty": 5}])
    client.lookup("SELECT SUM(qty) FROM trades [RANGE 60s] WHERE ticker = 'AB'").rows
    for update in client.subscribe("sums"):
        print(update.time, update.changes)
```

``AsyncClient`` has the same verbs for asyncio.
"""

from stairwise.client.aio import AsyncClient
from stairwise.client.aio_subscription import AsyncSubscription
from stairwise.client.client import Client
from stairwise.client.confirmation import Confirmation, PublishError
from stairwise.client.listing import QueryInfo, StatementResult, StreamInfo
from stairwise.client.lookups import Answer, Many
from stairwise.client.publisher import Publisher
from stairwise.client.status import Status, StreamStatus
from stairwise.client.subscription import Subscription
from stairwise.client.update import Change, Update
from stairwise.platform.channels import Credentials

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncSubscription",
    "Change",
    "Client",
    "Confirmation",
    "Credentials",
    "Many",
    "PublishError",
    "Publisher",
    "QueryInfo",
    "StatementResult",
    "Status",
    "StreamInfo",
    "StreamStatus",
    "Subscription",
    "Update",
]
