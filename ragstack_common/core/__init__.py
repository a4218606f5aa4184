"""What every other package may use: errors, clients of AWS, retries, deadlines, telemetry.

Nothing here knows a document, a search or a setting. Start with ``errors``; ``reporting`` says what callers learn of
them.
"""
