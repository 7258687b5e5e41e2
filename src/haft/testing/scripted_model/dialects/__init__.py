"""The APIs that the scripted model speaks, one file each. They know nothing of HTTP, and nothing of scripts."""

from haft.testing.scripted_model.dialects.anthropic import Anthropic
from haft.testing.scripted_model.dialects.chat import Chat
from haft.testing.scripted_model.dialects.gemini import Gemini
from haft.testing.scripted_model.dialects.responses import Responses
from haft.testing.scripted_model.dialects.wire import Conversation, Dialect, SentEvent, flat

DIALECTS: tuple[Dialect, ...] = (Anthropic(), Responses(), Chat(), Gemini())

__all__ = ["DIALECTS", "Conversation", "Dialect", "SentEvent", "flat"]
