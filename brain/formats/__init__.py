"""Pure codecs for import and export."""
