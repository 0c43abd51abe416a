"""STEAM's executor: a stream manager, and plans whose operators schedule themselves by pulling.

A plan is a tree of `PlanOperator`s with Open, GetNext and Close. Whoever wants a tuple calls
GetNext; an operator without input answers with a NULL tuple, here None, instead of waiting (Hammad
et al., A Stream Database Server for Sensor Applications, sections 4 to 6, and TR-010 section 3.1.1
and Figure 5). docs/steam.md says which part of the product does the same work.
"""
