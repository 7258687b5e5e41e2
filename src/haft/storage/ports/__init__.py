"""What a storage must be able to do, one port for each kind of thing that is kept, and the values that travel.

`storage/sqlite` is the implementation that ships. Another one subclasses these protocols, and must pass the suite in
`tests/storage/contract`.
"""
