"""Published layers: changes that are committed, but do not lie in the workspace's own files yet.

A call sees the workspace as it was committed when the call began: its *view*. A commit must not change files beneath a
view, or the call would see old and new files mixed. So while older views are in use, a commit only publishes its
changes as a layer. New views consist of the workspace and of the published layers. When the older views have ended, the
layer is *flushed*: its files are moved into the workspace.

`register` knows the views and the layers, for all processes. `layer_files` makes a layer, `committed_tree` reads the
committed state, `views` takes views, and `conflicts` finds out what was committed since a view was taken.
"""
