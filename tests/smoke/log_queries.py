"""Two queries over logs in a process of their own, to be killed: log_queries.py FOLDER.

One joins two logs, and its results go to a log; the other copies a log by Spark's own readers
and writers. They end once they have read all of it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from conftest import QUICK_TO_START
from sightings import JOIN

import nilometer as nm
from nilometer.log.reader import LogReader
from nilometer.spark.inputs import Inputs, describe_log
from nilometer.spark.log_cursor import LogRange
from nilometer.spark.log_rows import register_log_sources
from nilometer.spark.relations import SparkEngine
from nilometer.spark.start_query import Destination, start_query
from nilometer.sql.catalog import Catalog
from nilometer.sql.compile import compile_statement
from nilometer.sql.statements import read_query

MOST = 30
WHOLE = "whole"
"""A file that is there once the logs have all their rows."""


def main(folder: Path) -> None:
    spark = nm.local_spark(memory="1g", cores=2, config=QUICK_TO_START)
    logs = {
        name: LogRange(
            str(folder / name),
            LogReader.open(folder / name).layout,
            "earliest",
            reader="joining",
            max_rows=MOST,
        )
        for name in ("A", "B")
    }
    inputs = Inputs(spark, logs=logs)
    relations = {name: describe_log(name, log.layout) for name, log in logs.items()}
    catalog = Catalog(relations, {}, SparkEngine(inputs))
    plan = compile_statement(read_query(JOIN), catalog, 2)
    place = Destination(str(folder / "joined"), str(folder / "joining"))
    register_log_sources(spark)
    copying = (
        spark.readStream.format("nilometer")
        .options(path=str(folder / "A"), startingOffsets="earliest", maxRowsPerTrigger=MOST)
        .load()
        .writeStream.format("nilometer")
        .options(path=str(folder / "copied"), time="ts")
        .option("checkpointLocation", str(folder / "copying"))
    )
    queries = [start_query(plan, inputs, place), copying.start()]
    while not (folder / WHOLE).exists():
        time.sleep(0.05)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
