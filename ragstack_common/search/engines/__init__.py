"""The stores that answer a search. Each is an optional extra and is imported only when it is used."""
