"""The store: file contents by digest, how long they are kept, and how much space they use."""
