"""Talk to a Nilometer server: `nilometer.Client` and `nilometer.AsyncClient`."""

from nilometer.extras import require_extras

require_extras("this", "client")

from nilometer.client.async_client import AsyncClient, AsyncFollowing, AsyncQuery
from nilometer.client.client import Client, Query
from nilometer.client.follow_rows import Following
from nilometer.client.live import LiveAnswer
from nilometer.client.rows import Answer, Page, Rows

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncFollowing",
    "AsyncQuery",
    "Client",
    "Following",
    "LiveAnswer",
    "Page",
    "Query",
    "Rows",
]
