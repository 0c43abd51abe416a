"""Nile's own pipelines: light operators between FIFO queues, one tuple at a time.

A plan is a tree of operators from `StreamScan`s to an `AnswerOperator`; a `Pipeline` runs it under
ITA, TPA or NTA and records when each change of the answer was emitted. Each operator of the paper
(Hammad et al., Efficient Pipelined Execution of Sliding Window Queries over Data Streams) is in its
own file.
The product runs the same three approaches over stages of columnar operators
(`nilometer.operators.stage`), which take far longer for a single tuple: the costs here are those
that the paper compares.
"""
