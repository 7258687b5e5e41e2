"""What pydantic itself makes of a class that is written as text: the truth that reading is held against."""

import itertools
import json
import sys
import types

from pydantic import ValidationError

from haft.schema import Validator, why_too_large
from haft.sources.agent_studio.template import Problem
from haft.sources.agent_studio.template_reader import read_template

HEAD = """
import collections, datetime, decimal, enum, ipaddress, pathlib, re, typing, uuid
import typing as t
from enum import Enum, IntEnum, StrEnum, auto
from typing import *
import pydantic
from pydantic import *
from pydantic import BaseModel as Model, Field as F
"""
_numbers = itertools.count()


def executed(body, name="ToolParameters"):
    """The class, made by running the source. Tests only: haft never does."""
    module = types.ModuleType(f"oracle_{next(_numbers)}")
    sys.modules[module.__name__] = module
    try:
        exec(HEAD + body, module.__dict__)
        made = module.__dict__[name]
        made.model_rebuild()
        return made
    finally:
        del sys.modules[module.__name__]


def read(body, head=HEAD):
    template = read_template((head + body).encode())
    assert not isinstance(template, Problem), template
    return template


def of_fields(*fields, before="", bases="BaseModel"):
    """The source of a class with these fields."""
    return before + f"\nclass ToolParameters({bases}):\n" + "".join(f"    {field}\n" for field in fields or ("pass",))


def tool_of(body):
    """What is read of the class, with its schema checked for being one."""
    parameters = read(body).tool
    assert why_too_large(parameters.schema) is None
    json.dumps(parameters.schema, allow_nan=False)
    return parameters, Validator(parameters.schema)


def takes(made, value, *, strictly=False):
    """Whether the class takes a value: as a template is called, or as JSON with nothing turned into something else."""
    try:
        if strictly:
            made.model_validate_json(json.dumps(value), strict=True)
        else:
            made(**value)
    except (ValidationError, TypeError):
        return False
    return True
