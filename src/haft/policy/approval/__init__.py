"""Answers of people and open requests: the inbox, remembered rules, and approved definitions of tools."""
