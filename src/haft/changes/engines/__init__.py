"""The engines: how the changes of one call are taken in. All end in the same list of paths, before and after."""
