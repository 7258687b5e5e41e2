"""Webhooks: a server tells other programs what happened, such as that a call waits for a person.

`occurrences` finds what happened, `deliveries` keeps on disk what is to be sent, `sender` signs and sends it, and
`webhooks` runs all three. Surfaces start `Webhooks`, and show and repeat deliveries.
"""
