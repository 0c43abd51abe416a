"""What the command line does, apart from how it is called."""
