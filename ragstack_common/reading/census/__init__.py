"""What a file has, read in another way than for the index: the receipt of a document compares both."""
