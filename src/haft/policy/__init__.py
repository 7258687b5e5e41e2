"""May this happen: rules, the analysis of commands, what people answered, and the explanation of every decision.

`judge` brings it together. Nothing is imported here: listing tools needs `enablement` alone.
"""
