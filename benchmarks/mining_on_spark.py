"""python -m benchmarks.mining_on_spark: spectra per second through LINES and CLASSIFY, on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import nilometer as nm
from benchmarks.mining import KIND, spectra, timed
from nilometer_papers.idhm.knowledge import background_rows, template_rows
from nilometer_papers.idhm.knowledge import rows as knowledge_rows


def on_spark(rows: int = 40_000) -> tuple[float, float]:
    """Spectra per second through LINES and CLASSIFY in one statement, and through Spark alone."""
    few = spectra(400)
    counts = np.tile(few, (rows // 400, 1)).astype(np.int32)
    table = pa.table(
        {
            "ts": pa.array(1_700_000_000_000_000 + np.arange(rows), pa.timestamp("us", tz="UTC")),
            "counts": pa.FixedSizeListArray.from_arrays(
                pa.array(counts.ravel()), counts.shape[1]
            ).cast(pa.list_(pa.int32())),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, f"{folder}/spectra.parquet", row_group_size=5_000)
        spark = nm.local_spark()
        frame = spark.read.parquet(folder)
        db = nm.connect(spark)
        db.create_stream("Spectra", frame, time="ts")
        db.create_table("Templates", spark.createDataFrame(template_rows(KIND).to_pandas()))
        db.create_table("Blank", spark.createDataFrame(background_rows(KIND).to_pandas()))
        db.create_table("Library", spark.createDataFrame(knowledge_rows(KIND, 500).to_pandas()))
        templates = ", ".join(template_rows(KIND).column_names)
        blank = ", ".join(background_rows(KIND).column_names)
        statement = f"""
            SELECT class, confidence FROM CLASSIFY(
                LINES(Spectra, counts => counts, live => 60.0,
                      templates => (SELECT {templates} FROM Templates),
                      background => (SELECT {blank} FROM Blank)),
                pattern => pattern, method => 'tree',
                knowledge => (SELECT pattern, family FROM Library))
        """

        def ours() -> int:
            return db.sql(statement).count()

        def peer() -> int:
            def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    yield batch.select(["ts"])

            return int(frame.mapInArrow(look, "ts TIMESTAMP").count())

        assert ours() == rows
        peer()
        (_, seconds), (_, others) = timed(ours), timed(peer)
        spark.stop()
    return rows / seconds, rows / others


def main() -> None:
    rate, floor = on_spark()
    Console(highlight=False).print(
        f"LINES and CLASSIFY in a statement, two cores: {rate:,.0f} spectra/s "
        f"({rate / 2:,.0f} a core); the same rows through an idle mapInArrow {floor:,.0f}/s"
    )


if __name__ == "__main__":
    main()
