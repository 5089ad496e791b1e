"""CCQ's service beside others: the same items, the same queries, one client, one run."""
