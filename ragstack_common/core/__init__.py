"""What every room uses: errors, clients, retries, deadlines, settings, telemetry."""
