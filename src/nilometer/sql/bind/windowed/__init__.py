"""Queries whose answers change, bound: from their trees to the nodes of a plan."""
