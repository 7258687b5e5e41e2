"""The command line `haft`. `main` is its entry, `app` the page that lists every command.

Above it is a person or a program; below it the service. It decides nothing: it reads words, calls, and prints. stdout
is data, stderr is talk. Importing a command costs what that command needs and no more, which is why packages below are
imported inside the functions that use them.
"""
