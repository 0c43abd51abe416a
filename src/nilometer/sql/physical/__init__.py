"""Plans in the terms of the operators that run them: columns by places, stages."""
