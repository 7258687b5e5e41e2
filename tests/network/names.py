"""The names of the world, and where they lead."""

NAMES = {
    "good.example": ["20.0.0.1"],
    "tenant.example": ["20.0.0.1"],
    "wild.example": ["20.0.0.2"],
    "a.wild.example": ["20.0.0.2"],
    "b.c.wild.example": ["20.0.0.2"],
    "evil.example": ["20.0.0.66"],
    "proxy.example": ["20.0.0.5"],
    "dead.example": ["20.0.0.9"],
    "six.example": ["2600::1"],
    "mixed.example": ["10.1.2.3", "20.0.0.1"],
    "loop.example": ["127.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "metadata.internal": ["169.254.169.254"],
    "inner.example": ["10.1.2.3"],
    "mapped.example": ["::ffff:10.1.2.3"],
    "db.internal": ["10.9.9.9"],
    "xn--bcher-kva.example": ["20.0.0.1"],
}
"""`tenant.example` is served at the same address as `good.example`, and is never granted."""
CHANGING = "rebind.example"
"""The first answer about this name leads to `good.example`, and all later ones to the metadata address."""
CHANGING_ADDRESSES = ["20.0.0.1", "169.254.169.254"]
PROBE = "resolver.example"
"""A name that only the world's own name server knows: it shows that programs ask this server."""
FORBIDDEN = ["20.0.0.66", "20.0.0.5", "10.1.2.3", "169.254.169.254"]
"""Addresses of servers that no call may reach, except with a grant of the whole network."""
