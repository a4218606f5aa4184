"""The background work: submitted documents prepared and stored, jobs, and statuses in their time."""
