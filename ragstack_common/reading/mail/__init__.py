"""Mails: their headers, what their body shows, and the files attached to them."""
