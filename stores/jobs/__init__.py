"""Jobs: trees of jobs, each a container of items; the results of one job become the items of the next."""
