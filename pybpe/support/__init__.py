"""What every other part of the package uses: checks of arguments, threads, locks, progress bars, output files."""
