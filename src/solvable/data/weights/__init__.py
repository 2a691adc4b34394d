"""Read arrays of weights one at a time from files, folders and objects, without running their code."""
