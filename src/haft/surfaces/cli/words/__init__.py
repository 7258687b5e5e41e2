"""What the words of a line mean: options and parameters, runs, times, threads, and the forms tools are told in."""
