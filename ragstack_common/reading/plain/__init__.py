"""Files of text that people read in another form than it is stored in: data, notebooks, markup and subtitles."""
