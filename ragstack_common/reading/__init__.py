"""The text of files, as it is indexed and shown, and where its characters are on a page.

Start with ``formats`` and ``conversion``; ``warm_process`` reads in a process with limits.
"""
