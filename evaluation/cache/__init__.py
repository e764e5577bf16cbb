"""The cache of compiled programs that commands share."""
