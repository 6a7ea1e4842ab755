"""Code that all other parts of the package use: checks of arguments, threads, locks, progress bars, output files."""
