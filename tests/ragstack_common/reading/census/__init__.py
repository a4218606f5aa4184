"""What files have, against what the readers read of them."""
