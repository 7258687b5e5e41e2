"""What lies in the workspace: where paths lead, what patterns find, what a directory holds."""
