"""One module for each verb: parse, one call, one rendering."""
