"""Signs messages, and sends them.

The headers and the signature are those of the Standard Webhooks specification, so receivers can check them with its
libraries. haft follows no redirect, reads nothing of an answer but its status, and connects to private addresses only
if the configuration says so.
"""

from __future__ import annotations

import base64
import hmac
import ssl
import time
from typing import TYPE_CHECKING, Final

import httpx2

from haft.sources.mcp import AddressRefused, named_hosts_only
from haft.version import __version__

if TYPE_CHECKING:
    from haft.service.webhooks.deliveries import Delivery
    from haft.service.webhooks.settings import Webhook

SECONDS: Final = 10.0
"""How long a receiver may take."""


class Sender:
    """Sends messages to receivers."""

    def __init__(self) -> None:
        certificates = httpx2.create_ssl_context()
        self._clients = {is_private: _client(certificates, is_private) for is_private in (False, True)}

    async def send(self, webhook: Webhook, delivery: Delivery) -> tuple[int | None, str | None]:
        """Send a message. Returns the status of the answer, and what went wrong; None if nothing did."""
        now = int(time.time())
        body = delivery.body.encode()
        headers = {
            "content-type": "application/json",
            "user-agent": f"haft/{__version__}",
            "webhook-id": delivery.id,
            "webhook-timestamp": str(now),
            "webhook-signature": signature(webhook.key, delivery.id, now, body),
        }
        client = self._clients[webhook.private]
        try:
            async with client.stream("POST", webhook.url, content=body, headers=headers) as answer:
                status = int(answer.status_code)
        except AddressRefused as error:
            return None, f"{error}: `private = true` allows this"
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return None, f"{type(error).__name__}: {error}"[:300].replace(webhook.url, "the address")
        return status, None if 200 <= status < 300 else f"the receiver answered {status}"

    async def close(self) -> None:
        """End the connections."""
        for client in self._clients.values():
            await client.aclose()


def signature(key: bytes, message: str, timestamp: int, body: bytes) -> str:
    """The signature of a message, over its id, the time and the body."""
    signed = hmac.digest(key, f"{message}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"


def _client(certificates: ssl.SSLContext, is_private: bool) -> httpx2.AsyncClient:
    transport = named_hosts_only(certificates, may_be_private=is_private)
    return httpx2.AsyncClient(transport=transport, timeout=SECONDS, follow_redirects=False, trust_env=False)
