"""What clients see: tools of the host, haft's own tools, resources, prompts and skills."""
