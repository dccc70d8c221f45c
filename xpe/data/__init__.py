"""Readers of data files and Hub data sets, remapping to local files, digests."""
