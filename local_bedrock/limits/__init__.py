"""What keeps calls from succeeding: quotas, and faults on purpose."""
