"""What can be configured: a model for each function, with names and limits that several rooms share.

A model says each setting once: its variable, type, range, default and meaning. The function reads it from its
environment, the stacks build that environment from the same model and reject what the function would reject, and the
tables in ``docs/CONFIGURATION.md`` are generated from it. Only handlers and the command line look into ``os.environ``.
Start with ``search``; ``base`` reads and describes settings.
"""
