"""The dialogue with the person at the terminal: questions, answers, and Ctrl-C."""
