"""The material of five papers: their join algorithms, every experiment, and an application."""
