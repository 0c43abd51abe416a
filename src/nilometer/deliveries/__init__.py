"""Post-processing units (STEAM 3.2): results of queries, delivered on."""
