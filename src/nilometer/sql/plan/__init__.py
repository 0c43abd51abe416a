"""Plans: their nodes, and the types of the expressions in them."""
