"""The types of the standard library and of pydantic that JSON Schema can express, by their full names."""

from __future__ import annotations

from typing import Any, Final

ANYTHING: Final = frozenset({"typing.Any", "builtins.object", "typing.Hashable", "collections.abc.Hashable"})

_STRINGS: Final = {
    "": (
        "builtins.str", "typing.Text", "typing.LiteralString", "pydantic.StrictStr",
    ),
    "json-string": ("pydantic.Json",),
    "base64": ("pydantic.Base64Str", "pydantic.Base64UrlStr"),
    "ip": ("pydantic.IPvAnyAddress", "pydantic.IPvAnyInterface", "pydantic.IPvAnyNetwork"),
    "zoneinfo": ("zoneinfo.ZoneInfo",),
    "binary": ("builtins.bytes", "pydantic.StrictBytes", "pydantic.Base64Bytes"),
    "password": ("pydantic.SecretStr", "pydantic.SecretBytes"),
    "date": ("datetime.date", "pydantic.PastDate", "pydantic.FutureDate"),
    "date-time": (
        "datetime.datetime", "pydantic.AwareDatetime", "pydantic.NaiveDatetime", "pydantic.PastDatetime",
        "pydantic.FutureDatetime",
    ),
    "time": ("datetime.time",),
    "duration": ("datetime.timedelta",),
    "uuid": ("uuid.UUID", "pydantic.UUID1", "pydantic.UUID3", "pydantic.UUID4", "pydantic.UUID5", "pydantic.UUID6",
             "pydantic.UUID7", "pydantic.UUID8"),
    "path": ("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath", "os.PathLike"),
    "file-path": ("pydantic.FilePath",),
    "directory-path": ("pydantic.DirectoryPath",),
    "uri": ("pydantic.AnyUrl", "pydantic.AnyHttpUrl", "pydantic.HttpUrl", "pydantic.FileUrl", "pydantic.FtpUrl",
            "pydantic.WebsocketUrl", "pydantic.AnyWebsocketUrl", "pydantic.PostgresDsn", "pydantic.MySQLDsn",
            "pydantic.RedisDsn", "pydantic.MongoDsn", "pydantic.AmqpDsn", "pydantic.KafkaDsn", "pydantic.MariaDBDsn",
            "pydantic.CockroachDsn", "pydantic.NatsDsn", "pydantic.ClickHouseDsn", "pydantic.SnowflakeDsn"),
    "email": ("pydantic.EmailStr",),
    "name-email": ("pydantic.NameEmail",),
    "ipv4": ("ipaddress.IPv4Address",),
    "ipv6": ("ipaddress.IPv6Address",),
    "ipv4network": ("ipaddress.IPv4Network",),
    "ipv6network": ("ipaddress.IPv6Network",),
    "regex": ("typing.Pattern", "re.Pattern"),
}  # fmt: skip

SIMPLE: Final[dict[str, dict[str, Any]]] = {
    **{
        name: {"type": "string", "format": form} if form else {"type": "string"}
        for form, names in _STRINGS.items()
        for name in names
    },
    "pydantic.NewPath": {"type": "string", "format": "path"},
    "builtins.int": {"type": "integer"},
    "pydantic.StrictInt": {"type": "integer"},
    "pydantic.PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "pydantic.NegativeInt": {"type": "integer", "exclusiveMaximum": 0},
    "pydantic.NonNegativeInt": {"type": "integer", "minimum": 0},
    "pydantic.NonPositiveInt": {"type": "integer", "maximum": 0},
    "builtins.float": {"type": "number"},
    "pydantic.StrictFloat": {"type": "number"},
    "pydantic.FiniteFloat": {"type": "number"},
    "pydantic.PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "pydantic.NegativeFloat": {"type": "number", "exclusiveMaximum": 0},
    "pydantic.NonNegativeFloat": {"type": "number", "minimum": 0},
    "pydantic.NonPositiveFloat": {"type": "number", "maximum": 0},
    "builtins.bool": {"type": "boolean"},
    "pydantic.StrictBool": {"type": "boolean"},
    "types.NoneType": {"type": "null"},
    "builtins.None": {"type": "null"},
    "decimal.Decimal": {"type": "number", "format": "decimal"},
    "pydantic.ByteSize": {"type": "integer"},
}

_LISTS: Final = ("List", "Sequence", "MutableSequence", "Collection", "Iterable", "Deque")
_SETS: Final = ("Set", "FrozenSet", "AbstractSet", "MutableSet")
_OBJECTS: Final = ("Dict", "Mapping", "MutableMapping", "DefaultDict", "OrderedDict")

LISTS: Final = frozenset(
    {
        "builtins.list",
        "collections.deque",
        *(f"{package}.{name}" for package in ("typing", "collections.abc") for name in _LISTS),
    }
)
SETS: Final = frozenset(
    {
        "builtins.set",
        "builtins.frozenset",
        *(f"{package}.{name}" for package in ("typing", "collections.abc") for name in _SETS),
    }
)
OBJECTS: Final = frozenset(
    {
        "builtins.dict",
        "collections.defaultdict",
        "collections.OrderedDict",
        *(f"{package}.{name}" for package in ("typing", "collections.abc") for name in _OBJECTS),
    }
)
TUPLES: Final = frozenset({"builtins.tuple", "typing.Tuple"})
COUNTERS: Final = frozenset({"typing.Counter", "collections.Counter"})

CONSTRAINED: Final[dict[str, dict[str, Any]]] = {
    "pydantic.constr": {"type": "string"},
    "pydantic.conint": {"type": "integer"},
    "pydantic.confloat": {"type": "number"},
    "pydantic.condecimal": {"type": "number", "format": "decimal"},
    "pydantic.conbytes": {"type": "string", "format": "binary"},
    "pydantic.condate": {"type": "string", "format": "date"},
}
"""Types that are written as a call with limits, such as `constr(max_length=5)`, and their schemas without the
limits."""
CONSTRAINED_LISTS: Final = {"pydantic.conlist": False, "pydantic.conset": True, "pydantic.confrozenset": True}
"""List types that are written as a call with limits, and whether their items are unique."""
