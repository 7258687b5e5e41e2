"""The interfaces to the service, such as the command line. Surfaces do not import each other."""
