"""The tables and figures of Golab and Özsu, "Processing Sliding Window Multi-Joins" (VLDB 2003)."""
