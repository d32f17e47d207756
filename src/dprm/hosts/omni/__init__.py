"""The host of pictures: a caption becomes 256 visual codes; see `host`."""
