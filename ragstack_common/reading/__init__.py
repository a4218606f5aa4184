"""Convert files to the text that is indexed and shown."""
