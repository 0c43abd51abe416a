"""Online data mining: operators that look for something in streams, one pass, bounded memory.

Each operator is a plain class that is fed arrays; beside it stands the table function by which
statements use it in FROM. `registry` names all of them.
"""
