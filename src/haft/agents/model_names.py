"""Which model a type of sub-agent means. Types often say `sonnet` or `inherit`, which names no model of a provider."""

from __future__ import annotations

from collections.abc import Mapping

from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model, and how haft came to it."""

    name: str
    """The name of the model; empty if none is configured."""
    note: str | None = None
    """Why the model is not the one that the type names; None if it is."""


def chosen_model(wanted: str, default: str, short_names: Mapping[str, str]) -> ChosenModel:
    """The model for a type that says `wanted`. `default` is the setting `subagents.model`, and `short_names` is
    `subagents.models`."""
    if wanted in short_names:
        return ChosenModel(short_names[wanted])
    if wanted in ("", "inherit"):
        return ChosenModel(default)
    if ":" in wanted:
        return ChosenModel(wanted)
    return ChosenModel(default, f"`{wanted}` has no entry in `subagents.models`, so `subagents.model` counts")
