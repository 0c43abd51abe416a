"""What the database knows: streams, sensor tables and their rows, tables, queries."""
