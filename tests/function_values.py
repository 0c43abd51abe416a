"""Awkward values of all types, and expressions over them that are evaluated here."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

_BEGIN: Final = datetime(1970, 1, 1, tzinfo=UTC)
INSTANT: Final = pa.timestamp("us", tz="UTC")


def _micros(text: str) -> int:
    return (datetime.fromisoformat(text) - _BEGIN) // timedelta(microseconds=1)


_TEXTS: Final = [
    "", " ", "a", "abc", "ABC", "a b  c", "  trimmed  ", "aXbXXc", "x,y,,z",
    "http://a.b/c?d=e f&g=1+2", "Straße", "ÄÖÜ ß", "ΑΣ ΟΔΟΣ", "İstanbul", "ǆ", "ﬁre",
    "e\u0301te\u0301", "𝄞𝄞 clef", "日本語テキスト", "tab\there", "line\nbreak", "cr\r\nlf", "a%b_c",
    "50%", "\\d+", "$1", "'quoted'", "aaaa", "abab", "0", "1", "-7", "+12", "  42 ", "007",
    "1.5", "-0.0", "1e3", ".5", "5.", "1e400", "NaN", "-Infinity", "inf", "0x1.8p1", "1.5d",
    "9223372036854775807", "9223372036854775808", "2147483648", "128", "true", "NO", "y", "f",
    "2026-01-31", "2024-2-29", "2023-02-29", "1582-10-10", "0001-01-01", "9999-12-31",
    "+12345-06-07", "2026", "2026-07", "2026-03-29 02:30:00", "2026-10-25 02:30:00",
    "2026-03-08 02:30:00.123456789", "2026-01-31T12:34:56Z", "2026-01-31 12:34:56.5+01:30",
    "2026-01-31 12:34:56 Europe/Berlin", "2026-1-2 3:4:5", "1969-12-31 23:59:59.999999",
    "1883-11-18 12:00:00", "2026-01-31 24:00:00", "2026-01-31 12:60:00", "2026-01-31 12",
    "2026-01-31 12:34", "2026-01-31 ", "2026-01-31T", "2026-01-31 xyz", "2026-01-31 12:34:56-7",
    "2026-01-31 12:34:56UTC", "2026-01-31 12:34:56.", "%41%zz", "%C3%A4+x", "4111111111111111",
    "zz9Aé", "deadBEEF", "abc12def345", "key=value;k2=v2", "a.b.c", "日,本", "x" * 40,
]  # fmt: skip
_INTS: Final = [
    0, 1, -1, 2, 3, 5, -5, 7, 10, 12, 13, 31, 59, 64, 100, 255, 1000, -1000, 2026, 2**31 - 1,
    -(2**31),
]  # fmt: skip
_LONGS: Final = [
    0, 1, -1, 2, 7, -7, 20, 21, 63, 1_700_000_000, -1_700_000_000, 2**40, 2**53 + 1, 2**63 - 1,
    -(2**63),
]  # fmt: skip
_DOUBLES: Final = [
    0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 2.675, 0.1, 3.14159, 1e-300, 5e-324, 1e15,
    1e16, 1e22, 1e300, -1e300, math.nan, math.inf, -math.inf, 2.0**53, 123456789.987654321,
    1_700_000_000.123456, -0.001, 100.0,
]  # fmt: skip
_DECIMALS: Final = [
    "0.000", "1.500", "-2.250", "7.005", "99999.999", "-99999.999", "0.001", "2.500", "3.500",
    "12.345",
]  # fmt: skip
_DATES: Final = [
    date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1600, 2, 29), date(1900, 3, 1),
    date(1969, 12, 31), date(1970, 1, 1), date(2000, 2, 29), date(2024, 2, 29),
    date(2024, 12, 30), date(2025, 12, 29), date(2026, 1, 1), date(2026, 1, 31),
    date(2026, 3, 29), date(2026, 10, 25), date(2026, 11, 1), date(2027, 1, 3),
    date(9999, 12, 31),
]  # fmt: skip
_TIMES: Final = [
    "0001-01-02 00:00:00", "1582-10-10 12:00:00", "1883-11-18 17:03:57", "1893-03-31 23:06:31",
    "1916-04-30 22:30:00", "1945-05-24 01:00:00", "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00", "1980-09-28 00:30:00", "2000-02-29 12:00:00.5",
    "2026-03-08 06:59:59.999999", "2026-03-08 07:00:00", "2026-03-29 00:59:59.999999",
    "2026-03-29 01:00:00", "2026-10-25 00:30:00", "2026-10-25 01:30:00", "2026-11-01 05:30:00",
    "2026-11-01 06:30:00", "2026-01-31 23:59:59.123456", "2024-12-30 00:00:00",
    "2026-12-31 23:30:00", "2100-07-01 12:00:00", "9999-12-30 23:59:59.999999",
]  # fmt: skip

ROWS: Final = 400


def rows() -> pa.Table:
    """Values of every column in random order, so that all combinations occur, including NULLs."""
    chance = random.Random(7)

    def some(values: list[Any], none: float = 0.04) -> list[Any]:
        first = [None, *values]
        chance.shuffle(first)
        more = (None if chance.random() < none else chance.choice(values) for _ in range(ROWS))
        return [*first, *more][:ROWS]

    def texts() -> list[str]:
        letters = "abcXYZ 019,.;-_%äßΣ𝄞é\u0301\n"
        made = ["".join(chance.choices(letters, k=chance.randrange(9))) for _ in range(60)]
        return [*_TEXTS, *made]

    doubles = [
        *_DOUBLES,
        *(chance.uniform(-1, 1) * 10 ** chance.randrange(-9, 12) for _ in range(150)),
    ]
    instants = [_micros(f"{text}+00:00") for text in _TIMES]
    instants += [
        chance.randrange(_micros("1850-01-01T00:00+00:00"), _micros("2150-01-01T00:00+00:00"))
        for _ in range(150)
    ]
    dates = [
        *_DATES,
        *(date(1700, 1, 1) + timedelta(days=chance.randrange(150_000)) for _ in range(150)),
    ]
    lists = [
        [chance.choice([None, 1, 2, 3, -5, 7]) for _ in range(chance.randrange(5))]
        for _ in range(60)
    ]
    words = [
        [chance.choice([None, "", "a", "b", "ab", "ß"]) for _ in range(chance.randrange(4))]
        for _ in range(40)
    ]
    floats = [
        [
            chance.choice([None, 0.0, -0.0, math.nan, 1.5, math.inf])
            for _ in range(chance.randrange(4))
        ]
        for _ in range(40)
    ]
    maps = [
        [(k, chance.choice([None, 1, 2])) for k in chance.sample("abc", chance.randrange(3))]
        for _ in range(30)
    ]
    return pa.table(
        {
            "s": pa.array(some(texts()), pa.string()),
            "u": pa.array(some(texts()), pa.string()),
            "i": pa.array(some(_INTS), pa.int32()),
            "j": pa.array(some(_INTS), pa.int32()),
            "k": pa.array(some([0, 1, 2, 3, 4, -1, -2, -3, 12]), pa.int32()),
            "b": pa.array(some([0, 1, -1, 7, 127, -128]), pa.int8()),
            "l": pa.array(some(_LONGS), pa.int64()),
            "f": pa.array(
                some([0.0, -0.0, 1.5, 0.1, math.nan, math.inf, -2.5, 1e10, 16777216.0]),
                pa.float32(),
            ),
            "d": pa.array(some(doubles), pa.float64()),
            "g": pa.array(some(doubles), pa.float64()),
            "n": pa.array(
                [None if v is None else Decimal(v) for v in some(_DECIMALS)], pa.decimal128(8, 3)
            ),
            "m": pa.array(
                [
                    None if v is None else Decimal(v)
                    for v in some(["0", "1", "-3", "12345678901234567890"])
                ],
                pa.decimal128(20, 0),
            ),
            "o": pa.array(some([True, False]), pa.bool_()),
            "a": pa.array(some(dates), pa.date32()),
            "c": pa.array(some(dates), pa.date32()),
            "t": pa.array(some(instants), pa.int64()).cast(INSTANT),
            "v": pa.array(some(instants), pa.int64()).cast(INSTANT),
            "x": pa.array(some([b"", b"\x00\xff", b"abc", "ä".encode()]), pa.binary()),
            "q": pa.array(some(lists), pa.list_(pa.int32())),
            "r": pa.array(some(lists), pa.list_(pa.int32())),
            "w": pa.array(some(words), pa.list_(pa.string())),
            "p": pa.array(some(floats), pa.list_(pa.float64())),
            "z": pa.array(some(maps), pa.map_(pa.string(), pa.int32())),
        }
    )


TEXTS: Final = r"""
upper(s)
lower(s)
ucase(u)
lcase(u)
initcap(s)
initcap(concat(u, ' ', s))
upper(i)
length(s)
len(x)
char_length(u)
character_length(u)
octet_length(s)
bit_length(s)
octet_length(x)
concat(s, u)
concat(s, i, o)
concat(s, n, a)
s || '-' || u
concat_ws('-', s, u, s)
concat_ws(u, s, i)
concat_ws(',')
concat_ws('-', split(s, ','), u, array(u, s))
concat_ws(u, array(s, CAST(NULL AS STRING)), i)
substring(s, k)
substring(s, k, 2)
substring(s, 0, 3)
substring(s, -3, 2)
substring(s, -30, 28)
substring(s FROM 2 FOR 3)
substr(s, 2)
substring(x, 2, 1)
left(s, 3)
right(s, 3)
left(s, k)
right(s, k)
trim(s)
ltrim(s)
rtrim(s)
trim(BOTH 'a' FROM s)
trim(LEADING ' a' FROM s)
trim(TRAILING 'cX' FROM s)
trim('a' FROM s)
btrim(s)
btrim(s, 'ax')
ltrim('a', s)
rtrim('cX', s)
trim('a', s)
ltrim('', s)
lpad(s, 5)
rpad(s, 5, 'xy')
lpad(s, least(k, 50), 'xy')
rpad(s, 10, '')
lpad(s, 12, u)
repeat(s, least(k, 50))
repeat(s, 3)
space(least(k, 50))
reverse(s)
replace(s, 'a', 'bb')
replace(s, 'a')
replace(s, '', 'x')
replace(s, u, '!')
translate(s, 'abc', 'xy')
translate(s, 'aab', '123')
instr(s, 'a')
instr(s, u)
instr(s, '')
locate('a', s)
locate('a', s, 2)
locate(u, s, k)
locate('', s, 3)
position('b' IN s)
position('b', s)
substring_index(s, ',', 2)
substring_index(s, ',', -2)
substring_index(s, 'a', k)
substring_index(s, 'aa', -1)
substring_index(s, '', 1)
split_part(s, ',', 2)
split_part(s, ',', -1)
split_part(s, '', 1)
split_part(s, 'X', k)
find_in_set('y', s)
find_in_set(s, 'a,b,,abc')
ascii(s)
chr(i)
char(l)
overlay(s PLACING 'zz' FROM 2)
overlay(s PLACING 'zz' FROM 2 FOR 0)
overlay(s, 'zz', k)
overlay(s, 'zzzz', 2, k)
levenshtein(s, u)
elt(k, s, u)
elt(1, s, u)
luhn_check(s)
startswith(s, 'a')
endswith(s, u)
contains(s, u)
contains(s, 'b')
s LIKE 'a%'
s LIKE '%b_%'
s NOT LIKE '%\\%%'
s LIKE '50!%' ESCAPE '!'
s ILIKE 'A%'
s ILIKE '%STRASSE'
s LIKE '%\n%'
s LIKE ''
like(s, 'a%')
s RLIKE '^a'
s RLIKE 'b$'
s RLIKE '^[a-c]+$'
s RLIKE '\\d+'
s RLIKE '\\s'
s RLIKE '.\n.'
s RLIKE 'a.c|X'
s RLIKE 'line.break'
s RLIKE '[^a-z0-9]'
regexp_like(s, '(ab)+')
regexp(s, 'x{2,3}')
regexp_extract(s, '(\\d+)', 1)
regexp_extract(s, '([a-z]+)=([a-z]+)', 2)
regexp_extract(s, '[a-c]+', 0)
regexp_extract(s, '(a)|(b)', 2)
regexp_extract(s, '(\\d+)-(\\d+)-(\\d+)')
regexp_extract(s, '([a-z]+?)$', 1)
regexp_replace(s, '\\d', '#')
regexp_replace(s, '([a-z])([0-9])', '$2-$1')
regexp_replace(s, 'a|b', '\\$')
regexp_replace(s, '[.]', '')
regexp_substr(s, '[0-9]+')
regexp_count(s, 'a')
regexp_count(s, '[a-z]+')
regexp_instr(s, 'b')
regexp_instr(s, '[𝄞本]')
split(s, ',')
split(s, '[X,]')
split(s, ',', 2)
split(s, ',', -1)
split(s, ',', 1)
split(s, '\\.')
md5(s)
md5(x)
sha(s)
sha1(s)
sha2(s, 256)
sha2(s, 0)
sha2(s, 512)
sha2(s, k)
crc32(s)
hex(s)
hex(l)
hex(i)
hex(x)
unhex(s)
bin(l)
base64(s)
base64(x)
url_encode(s)
url_decode(s)
try_url_decode(s)
""".strip().splitlines()

NUMBERS: Final = """
n / m
m / n
n / 3
3 / n
n / i
l / n
n / k
n / 7.25
n / -7
n % 7
n % m
m % n
n % 0.01
i % n
n % k
n % 2.5
n + 1
n * 2
n * m * m
m * m * m
m * 0.5
m * m + n
m / 0.000000000000000001
m - n / 3
n / NULL
NULL % n
n / d
mod(n, 7)
mod(m, n)
try_divide(n, m)
try_divide(m, k)
try_mod(n, k)
try_add(n, 1)
try_multiply(m, m)
abs(i)
abs(d)
abs(n)
negative(l)
positive(d)
sign(d)
signum(i)
sign(n)
sqrt(d)
sqrt(i)
cbrt(d)
exp(d)
expm1(d)
ln(d)
log(d)
log(2, d)
log(d, g)
log10(d)
log2(d)
log1p(d)
pow(d, g)
power(d, 2)
pow(i, 0.5)
hypot(d, g)
sin(d)
cos(d)
tan(d)
cot(d)
sec(d)
csc(d)
asin(d)
acos(d)
atan(d)
atan2(d, g)
sinh(d)
cosh(d)
tanh(d)
asinh(d)
acosh(d)
atanh(d)
degrees(d)
radians(d)
pi()
e()
factorial(i)
rint(d)
round(d)
round(d, 2)
round(d, -2)
round(n, 1)
round(i, -2)
round(f, 1)
bround(d)
bround(d, 1)
bround(n, 2)
bround(n)
bround(n, -1)
bround(i, -1)
bround(f)
floor(d)
ceil(d)
ceiling(n)
floor(n)
mod(i, j)
i % j
d % g
pmod(i, j)
pmod(l, 7)
pmod(d, 2.5e0)
pmod(i, -3)
i DIV j
i + j
i * j
l - 1
b + b
d / g
isnan(d)
isnan(f)
nanvl(d, g)
nanvl(f, 1.5)
width_bucket(d, 0, 10, 5)
width_bucket(d, 10, 0, 4)
bit_count(l)
bit_count(i)
bit_count(o)
bit_get(l, 3)
getbit(i, 0)
i & j
i | l
b ^ b
~i
~l
i & 255
shiftleft(i, 3)
shiftright(i, k)
shiftrightunsigned(i, 4)
shiftleft(l, k)
shiftrightunsigned(l, 60)
shiftright(b, 1)
i << 2
l >> 3
try_add(i, j)
try_subtract(l, 1)
try_multiply(i, j)
try_divide(i, j)
try_divide(d, g)
try_mod(i, j)
greatest(i, j, k)
least(d, g)
greatest(s, u)
greatest(n, i)
equal_null(i, j)
equal_null(d, g)
isnull(s)
isnotnull(s)
zeroifnull(i)
zeroifnull(d)
nullifzero(i)
nvl2(s, i, j)
nvl(i, j)
ifnull(s, u)
nullif(i, j)
coalesce(s, u, 'none')
if(o, i, j)
CASE WHEN o THEN s ELSE u END
i BETWEEN 0 AND 5
i IN (1, 2, j)
i IS DISTINCT FROM j
tinyint(i)
smallint(d)
bigint(s)
decimal(d)
binary(s)
int(s)
t + INTERVAL '1' DAY
t - v
i * INTERVAL '1' HOUR
INTERVAL '1' DAY * k
(t - v) * b
named_struct('x', i, 'y', s)
named_struct('x', i, 'y', s).y
""".strip().splitlines()

CASTS: Final = [
    f"{cast}({column} AS {kind})"
    for cast in ("CAST", "TRY_CAST")
    for column, kinds in {
        "s": "TINYINT SMALLINT INT BIGINT FLOAT DOUBLE BOOLEAN DATE TIMESTAMP DECIMAL(10,2) "
        "DECIMAL(38,0) BINARY STRING",
        "i": "TINYINT BIGINT DOUBLE STRING BOOLEAN DECIMAL(5,1) TIMESTAMP",
        "l": "INT STRING FLOAT TIMESTAMP DECIMAL(20,2)",
        "d": "INT BIGINT FLOAT BOOLEAN DECIMAL(20,6) TIMESTAMP STRING",
        "f": "INT DOUBLE TIMESTAMP",
        "n": "INT STRING DOUBLE BOOLEAN DECIMAL(4,1) TIMESTAMP",
        "m": "BIGINT STRING DECIMAL(38,10)",
        "o": "INT STRING DOUBLE",
        "a": "STRING TIMESTAMP DATE",
        "t": "STRING DATE BIGINT INT DOUBLE DECIMAL(20,6) TIMESTAMP",
    }.items()
    for kind in kinds.split()
]

TIMES: Final = """
t > '2026-01-31'
t <= '2026-03-29 02:30:00'
t BETWEEN '1970-01-01' AND '2026-10-25 01:30:00'
t IN ('1970-01-01', '2000-02-29 12:00:00.5')
'2024-02-29' = a
a <> '2026-01-31'
a BETWEEN '1900-03-01' AND '2024-02-29'
t <=> '1970-01-01'
a < t
t = a
t >= DATE '2026-03-29'
t NOT BETWEEN DATE '1970-01-01' AND a
t IN (DATE '1970-01-01', a)
nullif(t, a)
CASE a WHEN '1970-01-01' THEN 1 ELSE 2 END
t + INTERVAL '1' DAY
t - INTERVAL '3' DAYS
t + INTERVAL '36' HOURS
t - INTERVAL '25' HOURS
t + INTERVAL '2' HOURS
t + (v - t)
v - t > INTERVAL '1' DAY
INTERVAL '1' DAY + t
date_trunc('hour', t + INTERVAL '1' DAY)
year(t)
year(a)
year(s)
quarter(t)
month(t)
month(a)
day(t)
dayofmonth(a)
dayofyear(t)
dayofweek(a)
weekday(a)
weekofyear(t)
weekofyear(a)
hour(t)
minute(t)
second(t)
hour(a)
dayname(a)
monthname(t)
extract(year FROM t)
extract(YEAROFWEEK FROM a)
extract(quarter FROM t)
extract(month FROM a)
extract(week FROM a)
extract(day FROM t)
extract(dow FROM t)
extract(DAYOFWEEK_ISO FROM t)
extract(doy FROM t)
extract(hour FROM t)
extract(minute FROM t)
extract(second FROM t)
date_part('year', a)
date_part('seconds', t)
datepart('h', t)
date_add(a, k)
date_add(t, 1)
dateadd(a, 2)
date_sub(a, 40)
datediff(a, c)
datediff(t, v)
date_diff(a, t)
add_months(a, k)
add_months(t, -13)
months_between(t, v)
months_between(a, c)
months_between(t, v, false)
last_day(a)
last_day(t)
next_day(a, 'Monday')
next_day(a, 'fr')
next_day(t, 'SUN')
trunc(a, 'year')
trunc(a, 'MM')
trunc(t, 'week')
trunc(a, 'quarter')
date_trunc('year', t)
date_trunc('quarter', t)
date_trunc('month', t)
date_trunc('week', t)
date_trunc('day', t)
date_trunc('hour', t)
date_trunc('minute', t)
date_trunc('second', t)
date_trunc('millisecond', t)
date_trunc('DD', t)
date_trunc('day', a)
make_date(2000 + k, k, 29)
make_date(i, 2, 28)
make_timestamp(2026, 3, 29, k, 30, 1.5)
make_timestamp(2026, k, 31, 2, 30, 59)
make_timestamp_ltz(2026, 10, 25, 2, 59, 60)
unix_date(a)
date_from_unix_date(i)
unix_seconds(t)
unix_millis(t)
unix_micros(t)
timestamp_seconds(i)
timestamp_seconds(l)
timestamp_seconds(d)
timestamp_millis(l)
timestamp_micros(l)
from_utc_timestamp(t, 'Europe/Berlin')
to_utc_timestamp(t, 'America/New_York')
from_utc_timestamp(t, 'UTC')
date_format(t, 'yyyy-MM-dd HH:mm:ss.SSSSSS')
date_format(t, 'y yy M d H h m s S')
date_format(t, 'EEE, d MMM yyyy hh:mm a')
date_format(t, 'EEEE, dd MMMM yyyy')
date_format(t, "yyyy-MM-dd'T'HH:mm:ssXXX")
date_format(a, 'dd.MM.yyyy')
date_format(t, 'HH')
date_format(t, 'SSS')
date_format(t, 'E D kk KK')
date_format(t, "''yyyy 'o''clock'")
from_unixtime(l)
from_unixtime(i, 'yyyy-MM-dd')
to_date(s)
to_date(t)
to_date(s, 'yyyy-MM-dd')
to_date(date_format(t, 'dd/MM/yyyy'), 'dd/MM/yyyy')
to_timestamp(s)
to_timestamp_ltz(a)
timestamp(s)
date(s)
to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')
to_timestamp(date_format(t, 'yyyyMMddHHmmss'), 'yyyyMMddHHmmss')
to_timestamp(date_format(t, 'd MMM yyyy H:m:s.SSSSSS'), 'd MMM yyyy H:m:s.SSSSSS')
to_timestamp(date_format(t, 'yyyy-MM-dd HH:mm:ss.S'), 'yyyy-MM-dd HH:mm:ss.SSS')
try_to_timestamp(s, 'yyyy-MM-dd')
try_to_timestamp(s)
try_to_date(s)
unix_timestamp(t)
unix_timestamp(a)
unix_timestamp(s)
unix_timestamp(s, 'yyyy-MM-dd')
to_unix_timestamp(t)
dateadd(MONTH, k, t)
datediff(MONTH, t, v)
dateadd(DAY, k, t)
datediff(DAY, t, v)
dateadd(HOUR, k, t)
datediff(HOUR, t, v)
dateadd(YEAR, k, t)
datediff(YEAR, t, v)
dateadd(WEEK, k, t)
datediff(WEEK, t, v)
dateadd(QUARTER, k, t)
datediff(QUARTER, t, v)
dateadd(SECOND, k, t)
datediff(SECOND, t, v)
dateadd(MICROSECOND, k, t)
datediff(MICROSECOND, t, v)
timestampadd(MINUTE, i, t)
timestampdiff(MILLISECOND, t, v)
date_add(DAY, 1, a)
t - INTERVAL '90' MINUTES
t < v
a = c
a - c
a - DATE '2026-01-31'
a + 1
1 + a
a - 40
a + k
a - k
a + b
a - t
t - a
a + INTERVAL '1' DAY
INTERVAL '2' WEEKS + a
a - INTERVAL '3' DAYS
a + INTERVAL '36' HOURS
a - INTERVAL '1' HOUR
a + INTERVAL '1' MONTH
a - INTERVAL '3' MONTHS
a + INTERVAL '1' YEAR
a - INTERVAL '1-2' YEAR TO MONTH
t + INTERVAL '1' MONTH
INTERVAL '1' MONTH + t
t - INTERVAL '1' YEAR
t + INTERVAL '-14' MONTHS
t - INTERVAL '-1-1' YEAR TO MONTH
datediff(a + INTERVAL '1' MONTH, a)
coalesce(t, a)
coalesce(a, t, v)
coalesce(NULL, a, t)
ifnull(a, t)
nvl2(s, a, t)
if(o, a, t)
CASE WHEN o THEN t WHEN k > 1 THEN a END
greatest(a, t)
least(t, a, v)
to_char(t, 'yyyy-MM-dd HH:mm')
to_char(a, 'dd.MM.yyyy')
to_varchar(t, 'yyyy')
time_bucket(INTERVAL '5' MINUTES, t)
time_bucket(INTERVAL '90' SECONDS, t)
time_bucket(INTERVAL '7' HOURS, t)
time_bucket(INTERVAL '1' DAY, t)
time_bucket(INTERVAL '1' WEEK, t)
greatest(a, c)
coalesce(t, v)
""".strip().splitlines()

LISTS: Final = """
map('a', i, 'b', j)
map(coalesce(i, 0), s)
map(coalesce(k, 0), i, 99, j)
map_keys(map(coalesce(s, ''), i))
map_from_arrays(array('a', 'b'), array(i, j))
map_from_arrays(map_keys(z), map_values(z))
map_entries(z)
map_from_entries(map_entries(z))
map_from_entries(array(named_struct('a', coalesce(s, ''), 'b', i)))
map_concat(z, map('x', 1))
map_concat(z)
transform(q, x -> x + 1)
transform(q, x -> x * k)
transform(q, (x, n) -> x - n)
transform(w, x -> upper(x))
transform(q, x -> transform(r, y -> y + x + k))
transform(q, x -> CAST(x AS STRING))
transform(q, x -> 1 / x)
transform(q, x -> named_struct('v', x, 'r', k))
filter(q, x -> x > 1)
filter(q, (x, i) -> i % 2 = 0)
filter(q, x -> x IS NULL OR x > k)
filter(p, x -> x > 0)
filter(w, x -> x LIKE 'a%')
exists(q, x -> x > 2)
exists(w, x -> x = s)
forall(q, x -> x > 0)
forall(p, x -> isnan(x))
zip_with(q, r, (x, y) -> x + y)
zip_with(q, w, (x, y) -> concat(y, '-', x))
aggregate(q, 0, (a, x) -> a + x)
aggregate(q, 0, (a, x) -> a + coalesce(x, 0))
aggregate(q, 1, (a, x) -> a * coalesce(x, 1), a -> a / 2)
reduce(w, '', (a, x) -> a || coalesce(x, '?'))
aggregate(q, k, (a, x) -> greatest(a, x))
size(filter(q, x -> x > array_min(r)))
map_filter(z, (k, v) -> v > 1)
transform_values(z, (k, v) -> v + 1)
transform_values(z, (k, v) -> k)
transform_keys(z, (k, v) -> upper(k))
transform_keys(z, (k, v) -> length(k) + ascii(k))
map_keys(map_filter(z, (c, v) -> v > k))
size(q)
cardinality(z)
size(w)
array_size(q)
array(i, j)
array(s, u, 'x')
array(i, l)
array(d)
q[0]
q[k]
w[1]
z['a']
z[s]
element_at(q, 1)
element_at(q, -1)
element_at(q, k)
element_at(z, 'b')
try_element_at(q, k)
get(q, k)
array_contains(q, 2)
array_contains(w, s)
array_contains(p, 0.0D)
array_position(q, 3)
array_position(w, 'a')
array_remove(q, 1)
array_append(q, 9)
array_append(q, i)
array_prepend(w, s)
array_distinct(q)
array_distinct(p)
array_compact(w)
array_min(q)
array_max(q)
array_max(p)
array_min(p)
array_max(w)
sort_array(q)
sort_array(q, false)
sort_array(p)
sort_array(w, true)
array_sort(q)
array_sort(p)
array_union(q, r)
array_union(p, p)
array_union(p, array(0.0D))
array_intersect(p, p)
array_except(p, array(1.5D))
array_remove(p, 0.0D)
arrays_overlap(p, array(-0.0D))
array_intersect(q, r)
array_except(q, r)
arrays_overlap(q, r)
array_join(w, ',')
array_join(w, '-', '?')
array_join(w, u)
array_repeat(i, 3)
array_repeat(i, least(k, 50))
flatten(array(q, r))
slice(q, 1, 2)
slice(q, -2, 2)
slice(q, k, 1)
sequence(least(k, 50), 5)
sequence(1, least(k, 50))
sequence(1, 10, 3)
reverse(q)
concat(q, r)
map_keys(z)
map_values(z)
map_contains_key(z, 'a')
map_contains_key(z, s)
""".strip().splitlines()
