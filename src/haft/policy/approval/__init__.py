"""What people answered, and what they are still asked: the inbox, remembered rules, definitions that were agreed to."""

from haft.policy.approval.inbox import (
    Answered,
    Inbox,
    Waiting,
    digest_of,
    fingerprint_of,
    new_request_id,
)
from haft.policy.approval.memory import Memory, Remembered
from haft.policy.approval.pins import Pin, Pins

__all__ = [
    "Answered",
    "Inbox",
    "Memory",
    "Pin",
    "Pins",
    "Remembered",
    "Waiting",
    "digest_of",
    "fingerprint_of",
    "new_request_id",
]
