"""What is said to statements of the database that cannot be read: all of it, with its place."""

from __future__ import annotations

import pytest

from nilometer.errors import NilometerError
from nilometer.sql.statements import read_query, read_statements

ERRORS = r"""
EXPLAIN DROP TABLE Owners
----
only queries can be explained
  line 1, column 1:
    EXPLAIN DROP TABLE Owners
    ^^^^^^^^^^^^
  detail: got DROP
  hint: write EXPLAIN SELECT …

CREATE VIEW v AS SELECT 1
----
expected what to create
  line 1, column 8:
    CREATE VIEW v AS SELECT 1
           ^^^^
  detail: got VIEW
  hint: write CREATE STREAM, CREATE SENSOR TABLE, CREATE TABLE or CREATE QUERY

CREATE
----
expected what to create
  line 1, column 7:
    CREATE
          ^
  detail: got nothing
  hint: write CREATE STREAM, CREATE SENSOR TABLE, CREATE TABLE or CREATE QUERY

CREATE OR REPLACE TABLE t (a INT)
----
nothing is replaced by CREATE
  line 1, column 8:
    CREATE OR REPLACE TABLE t (a INT)
           ^^
  detail: got OR
  hint: DROP it first, or write IF NOT EXISTS

CREATE STREAM
----
expected the name of the stream
  line 1, column 14:
    CREATE STREAM
                 ^
  detail: got nothing
  hint: write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)

CREATE STREAM s
----
expected ( and the columns
  line 1, column 16:
    CREATE STREAM s
                   ^
  detail: got nothing
  hint: write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)

CREATE STREAM s ()
----
expected the name of a column
  line 1, column 18:
    CREATE STREAM s ()
                     ^
  detail: got )
  hint: write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)

CREATE STREAM s (LATENESS 5 S) FROM http
----
a stream has at least one column
  line 1, column 15:
    CREATE STREAM s (LATENESS 5 S) FROM http
                  ^
  hint: write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)

CREATE STREAM s (v DOUBLE)
----
expected FROM and the type of the stream
  line 1, column 27:
    CREATE STREAM s (v DOUBLE)
                              ^
  detail: got nothing
  hint: write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)

CREATE STREAM s (v DOUBLE FROM http
----
expected , or ) after the column
  line 1, column 27:
    CREATE STREAM s (v DOUBLE FROM http
                              ^^^^
  detail: got FROM
  hint: a column has a name and a type, and nothing else

CREATE STREAM s (v DOUBLE,) FROM http
----
expected the name of a column
  line 1, column 27:
    CREATE STREAM s (v DOUBLE,) FROM http
                              ^
  detail: got )
  hint: write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)

CREATE STREAM s (v DOUBLE, V INT) FROM http
----
two columns are named V
  line 1, column 28:
    CREATE STREAM s (v DOUBLE, V INT) FROM http
                               ^
  detail: v is the same in any case
  hint: rename one of them

CREATE STREAM s (v DOUBLE, _time TIMESTAMP) FROM http
----
_time cannot be the name of a column
  line 1, column 28:
    CREATE STREAM s (v DOUBLE, _time TIMESTAMP) FROM http
                               ^^^^^
  detail: rows have a column of that name by themselves
  hint: choose another name

CREATE STREAM s (v) FROM http
----
expected the type of v
  line 1, column 19:
    CREATE STREAM s (v) FROM http
                      ^
  detail: got )
  hint: write a type such as INT, BIGINT, DOUBLE, DECIMAL(10, 2), BOOLEAN, STRING, DATE, TIMESTAMP

CREATE STREAM s (v PARSECS) FROM http
----
expected the type of v
  line 1, column 20:
    CREATE STREAM s (v PARSECS) FROM http
                       ^^^^^^^
  detail: got PARSECS
  hint: write a type such as INT, BIGINT, DOUBLE, DECIMAL(10, 2), BOOLEAN, STRING, DATE, TIMESTAMP

CREATE STREAM s (v ARRAY<INT>) FROM http
----
a column cannot be of type ARRAY<INT>
  line 1, column 20:
    CREATE STREAM s (v ARRAY<INT>) FROM http
                       ^^^^^^^^^^
  hint: write a type such as INT, BIGINT, DOUBLE, DECIMAL(10, 2), BOOLEAN, STRING, DATE, TIMESTAMP

CREATE STREAM s (v VARCHAR(20)) FROM http
----
texts have no greatest length
  line 1, column 20:
    CREATE STREAM s (v VARCHAR(20)) FROM http
                       ^^^^^^^^^^^
  hint: write STRING

CREATE STREAM s (v DECIMAL(50, 2)) FROM http
----
a column cannot be of type DECIMAL(50, 2)
  line 1, column 20:
    CREATE STREAM s (v DECIMAL(50, 2)) FROM http
                       ^^^^^^^^^^^^^^
  hint: write a type such as INT, BIGINT, DOUBLE, DECIMAL(10, 2), BOOLEAN, STRING, DATE, TIMESTAMP

CREATE STREAM s (v DOUBLE NOT NULL) FROM http
----
expected , or ) after the column
  line 1, column 27:
    CREATE STREAM s (v DOUBLE NOT NULL) FROM http
                              ^^^
  detail: got NOT
  hint: a column has a name and a type, and nothing else

CREATE STREAM s (v DOUBLE, TIME ts) FROM http
----
TIME names ts, which is no column
  line 1, column 33:
    CREATE STREAM s (v DOUBLE, TIME ts) FROM http
                                    ^^
  detail: the columns are v
  hint: declare it: ts TIMESTAMP

CREATE STREAM s (v DOUBLE, TIME v) FROM http
----
the time is in a column of type TIMESTAMP
  line 1, column 33:
    CREATE STREAM s (v DOUBLE, TIME v) FROM http
                                    ^
  detail: v is of type DOUBLE
  hint: declare it: v TIMESTAMP

CREATE STREAM s (v DOUBLE, ts TIMESTAMP, TIME ts, TIME ts) FROM http
----
TIME is given twice
  line 1, column 51:
    CREATE STREAM s (v DOUBLE, ts TIMESTAMP, TIME ts, TIME ts) FROM http
                                                      ^^^^
  hint: leave one of them out

CREATE STREAM s (v DOUBLE, LATENESS -5 S) FROM http
----
LATENESS cannot be negative
  line 1, column 37:
    CREATE STREAM s (v DOUBLE, LATENESS -5 S) FROM http
                                        ^^^^
  detail: got -5 S
  hint: write LATENESS 5 SECONDS

CREATE STREAM s (v DOUBLE, LATENESS 5) FROM http
----
cannot read the length of time
  line 1, column 37:
    CREATE STREAM s (v DOUBLE, LATENESS 5) FROM http
                                        ^
  detail: got 5
  hint: write a number and a unit, such as 5 SECONDS, 0.8 S or 1 HOUR 30 MINUTES

CREATE STREAM s (v DOUBLE, LATENESS 5 PARSECS) FROM http
----
there is no unit of time PARSECS
  line 1, column 37:
    CREATE STREAM s (v DOUBLE, LATENESS 5 PARSECS) FROM http
                                        ^^^^^^^^^
  detail: got 5 PARSECS
  hint: write a number and a unit, such as 5 SECONDS, 0.8 S or 1 HOUR 30 MINUTES

CREATE STREAM s (v DOUBLE, IDLE 0 S) FROM http
----
IDLE must be longer than nothing
  line 1, column 33:
    CREATE STREAM s (v DOUBLE, IDLE 0 S) FROM http
                                    ^^^
  detail: got 0 S
  hint: write IDLE 30 SECONDS

CREATE STREAM s (v DOUBLE, LATENESS FOREVER) FROM http
----
expected a length of time such as 5 SECONDS
  line 1, column 37:
    CREATE STREAM s (v DOUBLE, LATENESS FOREVER) FROM http
                                        ^^^^^^^
  hint: write LATENESS 5 SECONDS

CREATE STREAM s (v DOUBLE, LATENESS 5 S, LATENESS 6 S) FROM http
----
LATENESS is given twice
  line 1, column 42:
    CREATE STREAM s (v DOUBLE, LATENESS 5 S, LATENESS 6 S) FROM http
                                             ^^^^^^^^
  hint: leave one of them out

CREATE STREAM s (v DOUBLE) FROM
----
expected the type of the stream
  line 1, column 32:
    CREATE STREAM s (v DOUBLE) FROM
                                   ^
  detail: got nothing
  hint: write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)

CREATE STREAM a.b (v DOUBLE) FROM http
----
a name has no dots
  line 1, column 15:
    CREATE STREAM a.b (v DOUBLE) FROM http
                  ^^
  hint: write a alone, or in backticks

CREATE STREAM s (v DOUBLE) FROM http WITH
----
expected ( after WITH
  line 1, column 42:
    CREATE STREAM s (v DOUBLE) FROM http WITH
                                             ^
  detail: got nothing
  hint: write WITH (interval = '5s', retries = 3)

CREATE STREAM s (v DOUBLE) FROM http WITH (a = 1, A = 2)
----
the option a is given twice
  line 1, column 51:
    CREATE STREAM s (v DOUBLE) FROM http WITH (a = 1, A = 2)
                                                      ^
  hint: leave one of them out

CREATE STREAM s (v DOUBLE) FROM http WITH (a)
----
expected = after the option a
  line 1, column 45:
    CREATE STREAM s (v DOUBLE) FROM http WITH (a)
                                                ^
  detail: got )
  hint: write WITH (interval = '5s', retries = 3)

CREATE STREAM s (v DOUBLE) FROM http WITH (a = )
----
expected the value of the option a
  line 1, column 48:
    CREATE STREAM s (v DOUBLE) FROM http WITH (a = )
                                                   ^
  detail: got )
  hint: write WITH (interval = '5s', retries = 3)

CREATE STREAM s (v DOUBLE) FROM http WITH (a = 'x' 'y')
----
the option a has one value
  line 1, column 48:
    CREATE STREAM s (v DOUBLE) FROM http WITH (a = 'x' 'y')
                                                   ^^^^^^^
  detail: got 'x' 'y'
  hint: write WITH (interval = '5s', retries = 3)

CREATE STREAM s (v DOUBLE) FROM http WITH (a + b = 1)
----
expected the name of an option
  line 1, column 44:
    CREATE STREAM s (v DOUBLE) FROM http WITH (a + b = 1)
                                               ^^^^^
  detail: got a + b
  hint: write WITH (interval = '5s', retries = 3)

CREATE STREAM s (v DOUBLE) FROM http AND more
----
expected the end of the statement
  line 1, column 38:
    CREATE STREAM s (v DOUBLE) FROM http AND more
                                         ^^^
  detail: got AND
  hint: write CREATE STREAM s (v DOUBLE, …) FROM http WITH (…)

CREATE SENSOR t (a INT)
----
expected TABLE after SENSOR
  line 1, column 15:
    CREATE SENSOR t (a INT)
                  ^
  detail: got t
  hint: write CREATE SENSOR TABLE s (id INT, …, reading STREAM(v DOUBLE, …) FROM http)

CREATE SENSOR TABLE t (a INT)
----
the sensor table t has no stream column
  line 1, column 21:
    CREATE SENSOR TABLE t (a INT)
                        ^
  hint: add reading STREAM(v DOUBLE, …) FROM http, or write CREATE TABLE without SENSOR

CREATE SENSOR TABLE t (a INT, r STREAM(v DOUBLE) FROM http, q STREAM(v DOUBLE) FROM http)
----
a sensor table has one stream column
  line 1, column 61:
    CREATE SENSOR TABLE t (a INT, r STREAM(v DOUBLE) FROM http, q STREAM(v DOUBLE) FROM http)
                                                                ^
  detail: r is one already
  hint: declare several fields in one STREAM(…), or several tables

CREATE SENSOR TABLE t (a INT, a STREAM(v DOUBLE) FROM http)
----
two columns are named a
  line 1, column 31:
    CREATE SENSOR TABLE t (a INT, a STREAM(v DOUBLE) FROM http)
                                  ^
  hint: rename one of them

CREATE SENSOR TABLE t (a INT, r STREAM FROM http)
----
expected ( and the columns
  line 1, column 40:
    CREATE SENSOR TABLE t (a INT, r STREAM FROM http)
                                           ^^^^
  detail: got FROM
  hint: write CREATE SENSOR TABLE s (id INT, …, reading STREAM(v DOUBLE, …) FROM http)

CREATE TABLE t (a INT, a STRING)
----
two columns are named a
  line 1, column 24:
    CREATE TABLE t (a INT, a STRING)
                           ^
  hint: rename one of them

CREATE QUERY q SELECT a FROM b
----
expected AS and a query
  line 1, column 16:
    CREATE QUERY q SELECT a FROM b
                   ^^^^^^
  detail: got SELECT
  hint: write CREATE QUERY q AS SELECT …

CREATE QUERY q AS
----
expected a query
  line 1, column 18:
    CREATE QUERY q AS
                     ^
  detail: got nothing
  hint: write CREATE QUERY q AS SELECT …

CREATE QUERY q AS EXPLAIN SELECT a FROM b
----
expected a query
  line 1, column 19:
    CREATE QUERY q AS EXPLAIN SELECT a FROM b
                      ^^^^^^^
  detail: got EXPLAIN
  hint: write CREATE QUERY q AS SELECT …

CREATE QUERY q AS DROP TABLE t
----
this statement cannot be run: DROP
  line 1, column 19:
    CREATE QUERY q AS DROP TABLE t
                      ^^^^
  hint: queries begin with SELECT or WITH, or with EXPLAIN before them

INSERT t VALUES (1)
----
expected INTO after INSERT
  line 1, column 8:
    INSERT t VALUES (1)
           ^
  detail: got t
  hint: write INSERT INTO t VALUES (1, 'hall'), (2, 'roof')

INSERT INTO t SELECT a FROM b
----
rows are inserted by VALUES only
  line 1, column 15:
    INSERT INTO t SELECT a FROM b
                  ^^^^^^
  detail: got SELECT
  hint: write INSERT INTO t VALUES (1, 'hall'), (2, 'roof')

INSERT INTO t VALUES
----
expected ( and the values of a row
  line 1, column 21:
    INSERT INTO t VALUES
                        ^
  detail: got nothing
  hint: write INSERT INTO t VALUES (1, 'hall'), (2, 'roof')

INSERT INTO t VALUES ()
----
expected a value
  line 1, column 23:
    INSERT INTO t VALUES ()
                          ^
  detail: got )
  hint: write INSERT INTO t VALUES (1, 'hall'), (2, 'roof')

INSERT INTO t VALUES (1, 2), (3)
----
the row has 1 value, but the first row has 2
  line 1, column 30:
    INSERT INTO t VALUES (1, 2), (3)
                                 ^^^
  hint: give every column a value, NULL if there is none

INSERT INTO t (a, b) VALUES (1)
----
the row has 1 value, but 2 columns are named
  line 1, column 29:
    INSERT INTO t (a, b) VALUES (1)
                                ^^^
  hint: give every column a value, NULL if there is none

INSERT INTO t (a, A) VALUES (1, 2)
----
column A is named twice
  line 1, column 19:
    INSERT INTO t (a, A) VALUES (1, 2)
                      ^
  hint: leave one of them out

INSERT INTO t VALUES (hall)
----
a value must be a constant
  line 1, column 23:
    INSERT INTO t VALUES (hall)
                          ^^^^
  detail: got hall
  hint: texts stand in quotes: 'hall'

INSERT INTO t VALUES (1 + 'x')
----
cannot apply + to INT and STRING
  line 1, column 23:
    INSERT INTO t VALUES (1 + 'x')
                          ^^^^^^^
  hint: cast one side to the type of the other

INSERT INTO t VALUES (rand())
----
the function rand is not available here
  line 1, column 23:
    INSERT INTO t VALUES (rand())
                          ^^^^^^
  hint: write a number, a text, TRUE, FALSE, NULL, DATE '2026-01-31', TIMESTAMP '…' or X'0A'

INSERT INTO t VALUES (1 / 0)
----
division by zero
  line 1, column 23:
    INSERT INTO t VALUES (1 / 0)
                          ^^^^^
  hint: guard it: x <> 0 AND …, or CASE WHEN x <> 0 THEN … END

INSERT INTO t VALUES (DATE '2026-02-30')
----
cannot read the date or time
  line 1, column 28:
    INSERT INTO t VALUES (DATE '2026-02-30')
                               ^^^^^^^^^^^^
  detail: got 2026-02-30
  hint: write DATE '2026-01-31' or TIMESTAMP '2026-01-31 12:00:00'

INSERT INTO t VALUES (X'0G')
----
cannot read the bytes
  line 1, column 23:
    INSERT INTO t VALUES (X'0G')
                          ^^^^^^
  hint: write X'0AFF'

INSERT INTO t VALUES (1) 2
----
expected the end of the statement
  line 1, column 26:
    INSERT INTO t VALUES (1) 2
                             ^
  detail: got 2
  hint: write INSERT INTO t VALUES (1, 'hall'), (2, 'roof')

UPDATE t
----
expected SET and the new values
  line 1, column 9:
    UPDATE t
            ^
  detail: got nothing
  hint: write UPDATE t SET a = 1 WHERE …

UPDATE t SET
----
expected the name of a column
  line 1, column 13:
    UPDATE t SET
                ^
  detail: got nothing
  hint: write UPDATE t SET a = 1 WHERE …

UPDATE t SET a
----
expected = and the new value of a
  line 1, column 15:
    UPDATE t SET a
                  ^
  detail: got nothing
  hint: write UPDATE t SET a = 1 WHERE …

UPDATE t SET a = 1, A = 2
----
column A is set twice
  line 1, column 21:
    UPDATE t SET a = 1, A = 2
                        ^
  hint: leave one of them out

UPDATE t SET a = 1 WHERE
----
expected a condition
  line 1, column 25:
    UPDATE t SET a = 1 WHERE
                            ^
  detail: got nothing
  hint: write UPDATE t SET a = 1 WHERE …

DELETE t
----
expected FROM after DELETE
  line 1, column 8:
    DELETE t
           ^
  detail: got t
  hint: write DELETE FROM t WHERE …

DELETE FROM t WHERE a = 1 LIMIT 3
----
expected the end of the statement
  line 1, column 27:
    DELETE FROM t WHERE a = 1 LIMIT 3
                              ^^^^^
  detail: got LIMIT
  hint: write DELETE FROM t WHERE …

DROP t
----
expected what to drop
  line 1, column 6:
    DROP t
         ^
  detail: got t
  hint: write DROP STREAM s, DROP SENSOR TABLE s, DROP TABLE t or DROP QUERY q

DROP STREAM
----
expected the name of the stream
  line 1, column 12:
    DROP STREAM
               ^
  detail: got nothing
  hint: write DROP STREAM s, DROP SENSOR TABLE s, DROP TABLE t or DROP QUERY q

DROP STREAM a, b
----
expected the end of the statement
  line 1, column 14:
    DROP STREAM a, b
                 ^
  detail: got ,
  hint: write DROP STREAM s, DROP SENSOR TABLE s, DROP TABLE t or DROP QUERY q

SHOW
----
there is nothing of that name to show
  line 1, column 5:
    SHOW
        ^
  detail: got nothing
  hint: write SHOW and one of STREAMS, TABLES, SENSORS, QUERIES, READERS, DEAD LETTERS, STREAM TYPES

SHOW TABLE
----
there is nothing of that name to show
  line 1, column 6:
    SHOW TABLE
         ^^^^^
  detail: got TABLE
  hint: write SHOW and one of STREAMS, TABLES, SENSORS, QUERIES, READERS, DEAD LETTERS, STREAM TYPES

SHOW STREAMS FROM t
----
SHOW STREAMS has no FROM
  line 1, column 14:
    SHOW STREAMS FROM t
                 ^^^^
  hint: write SHOW STREAMS

SHOW SENSORS FROM
----
expected the name of a stream or sensor table
  line 1, column 18:
    SHOW SENSORS FROM
                     ^
  detail: got nothing
  hint: write SHOW SENSORS FROM Sensors

DESCRIBE
----
expected a name
  line 1, column 9:
    DESCRIBE
            ^
  detail: got nothing
  hint: write DESCRIBE and the name of a stream, table, sensor table or query

DESCRIBE a b
----
expected the end of the statement
  line 1, column 12:
    DESCRIBE a b
               ^
  detail: got b
  hint: write DESCRIBE and the name of a stream, table, sensor table or query

START q
----
expected QUERY after START
  line 1, column 7:
    START q
          ^
  detail: got q
  hint: write START QUERY q

STOP QUERY
----
expected the name of the query
  line 1, column 11:
    STOP QUERY
              ^
  detail: got nothing
  hint: write STOP QUERY q

SELECT a FROM b FROM START WHERE a > 1
----
FROM START stands at the end of a query
  line 1, column 17:
    SELECT a FROM b FROM START WHERE a > 1
                    ^^^^
  hint: write SELECT … FROM A WHERE … FROM START

SELECT a FROM (SELECT a FROM b FROM START)
----
FROM START belongs to the outermost query
  line 1, column 32:
    SELECT a FROM (SELECT a FROM b FROM START)
                                   ^^^^^^^^^^
  hint: put it at the end of the statement

SELECT a FROM b FROM START FROM START
----
FROM START stands at the end of a query
  line 1, column 17:
    SELECT a FROM b FROM START FROM START
                    ^^^^
  hint: write SELECT … FROM A WHERE … FROM START
"""
CASES = [tuple(case.strip().split("\n----\n")) for case in ERRORS.split("\n\n")]


@pytest.mark.parametrize(("sql", "text"), CASES, ids=[sql for sql, _ in CASES])
def test_errors(sql: str, text: str) -> None:
    with pytest.raises(NilometerError) as refused:
        read_statements(sql)
    assert str(refused.value) == text


def test_places_count_in_the_whole_text() -> None:
    with pytest.raises(NilometerError) as refused:
        read_statements("SHOW STREAMS;\nDROP QUERY q;\n  CREATE TABLE t (a PARSECS)")
    assert "line 3, column 21:" in str(refused.value)


def test_a_query_was_expected() -> None:
    with pytest.raises(NilometerError) as refused:
        read_query("; DROP QUERY q")
    assert str(refused.value) == (
        "this statement cannot be run here: DROP\n"
        "  line 1, column 3:\n"
        "    ; DROP QUERY q\n"
        "      ^^^^\n"
        "  detail: a query was expected\n"
        "  hint: queries begin with SELECT or WITH, or with EXPLAIN before them"
    )
