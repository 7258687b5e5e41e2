"""Answers of people, and the requests that wait for one: the inbox, remembered rules, and approved definitions of
tools."""
