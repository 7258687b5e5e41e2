"""The requests that wait for a person's answer, and the answers that people gave: the inbox, remembered rules, and
approved definitions of tools."""
