"""What several files of tests play their stories with."""
