"""Talking with the person at the terminal: questions, answers, and wishes to end."""
