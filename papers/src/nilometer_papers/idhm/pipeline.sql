-- The application in SQL. What begins with a dollar sign is put in when it is started: addresses,
-- and the rule by which there is a verdict (decision.py, where it was chosen with trials).

-- Where boxes are.
CREATE STREAM Moves (box BIGINT, place STRING, at TIMESTAMP, TIME at, IDLE 1 SECOND)
FROM http WITH (address = '$belt', interval = '200ms');
CREATE QUERY belt AS SELECT box, place, at FROM Moves;

-- Detectors send the events of each burst; the unit `spectra` makes counts by channel of them.
CREATE SENSOR TABLE Near (
  detector INT, kind STRING,
  Reading STREAM(box BIGINT, burst INT, live DOUBLE, counts ARRAY<DOUBLE>, at TIMESTAMP,
                 TIME at, IDLE 30 SECONDS) FROM $near);
INSERT INTO Near VALUES (1, 'NaI', '$site/1'), (2, 'NaI', '$site/2');

CREATE SENSOR TABLE Remote (
  detector INT, kind STRING,
  Reading STREAM(box BIGINT, burst INT, live DOUBLE, counts ARRAY<DOUBLE>, at TIMESTAMP,
                 TIME at, IDLE 30 SECONDS) FROM $remote);
INSERT INTO Remote VALUES (3, 'LaBr3', '$remote_address');

-- What is known: lines by their energy (MeV); what a mole of an element gives in each channel in a
-- second; what is there without a box, in a second and in a long time; patterns of known boxes.
CREATE TABLE Lines (energy DOUBLE, name STRING);
CREATE TABLE Templates (kind STRING, name STRING, counts ARRAY<DOUBLE>, weight DOUBLE);
CREATE TABLE Backgrounds (kind STRING, rates ARRAY<DOUBLE>, counts ARRAY<DOUBLE>, live DOUBLE);
CREATE TABLE Library (kind STRING, pattern ARRAY<DOUBLE>, family STRING, material STRING);

-- After each burst, and for each detector: all it has counted of the box, how suspicious that is,
-- and the hazardous material that it is most like.
CREATE QUERY verdicts AS
SELECT detector, kind, box, burst, exposure, $verdict AS verdict,
       family AS class, CASE WHEN family <> 'none' THEN class END AS material,
       $confidence AS confidence,
       suspicion, significance, lines, counts, matched
FROM   CLASSIFY((
         SELECT detector, kind, box, burst, live_total AS exposure, total AS counts, pattern,
                fitted AS matched, significance, lines, class AS family,
                $suspicion AS suspicion
         FROM   CLASSIFY(LINES(ACCUMULATE(
                  (SELECT detector, kind, Reading.box AS box, Reading.burst AS burst,
                          Reading.live AS live, Reading.counts AS counts
                   FROM Near) AS S [RANGE 2 MINUTES],
                  by => (detector, box), value => counts, live => live) AS A,
                  counts => total, live => live_total,
                  templates => (SELECT name, counts, weight FROM Templates WHERE kind = 'NaI'),
                  background => (SELECT rates FROM Backgrounds WHERE kind = 'NaI')) AS L,
                  pattern => pattern, neighbours => 15,
                  knowledge => (SELECT pattern, family FROM Library WHERE kind = 'NaI')) AS F
         ) AS S, pattern => pattern, neighbours => 5,
         knowledge => (SELECT pattern, material FROM Library
                       WHERE kind = 'NaI' AND family <> 'none')) AS M
UNION ALL
SELECT detector, kind, box, burst, exposure, $verdict AS verdict,
       family AS class, CASE WHEN family <> 'none' THEN class END AS material,
       $confidence AS confidence,
       suspicion, significance, lines, counts, matched
FROM   CLASSIFY((
         SELECT detector, kind, box, burst, live_total AS exposure, total AS counts, pattern,
                fitted AS matched, significance, lines, class AS family,
                $suspicion AS suspicion
         FROM   CLASSIFY(LINES(ACCUMULATE(
                  (SELECT detector, kind, Reading.box AS box, Reading.burst AS burst,
                          Reading.live AS live, Reading.counts AS counts
                   FROM Remote) AS S [RANGE 2 MINUTES],
                  by => (detector, box), value => counts, live => live) AS A,
                  counts => total, live => live_total,
                  templates => (SELECT name, counts, weight FROM Templates WHERE kind = 'LaBr3'),
                  background => (SELECT rates FROM Backgrounds WHERE kind = 'LaBr3')) AS L,
                  pattern => pattern, neighbours => 15,
                  knowledge => (SELECT pattern, family FROM Library WHERE kind = 'LaBr3')) AS F
         ) AS S, pattern => pattern, neighbours => 5,
         knowledge => (SELECT pattern, material FROM Library
                       WHERE kind = 'LaBr3' AND family <> 'none')) AS M;

-- The peaks of each spectrum over the background, and the lines they belong to.
CREATE QUERY peaks AS
SELECT detector, box, burst, energy, area, significance, line
FROM   PEAKS(ACCUMULATE(
         (SELECT detector, kind, Reading.box AS box, Reading.burst AS burst,
                 Reading.live AS live, Reading.counts AS counts FROM Near) AS S [RANGE 2 MINUTES],
         by => (detector, box), value => counts, live => live) AS A,
         counts => total, live => live_total, channel_width => 0.01171875, fwhm => 0.060, fwhm_at => 1.0,
         blank => (SELECT counts, live FROM Backgrounds WHERE kind = 'NaI'),
         lines => (SELECT energy, name FROM Lines)) AS P
UNION ALL
SELECT detector, box, burst, energy, area, significance, line
FROM   PEAKS(ACCUMULATE(
         (SELECT detector, kind, Reading.box AS box, Reading.burst AS burst,
                 Reading.live AS live, Reading.counts AS counts FROM Remote) AS S [RANGE 2 MINUTES],
         by => (detector, box), value => counts, live => live) AS A,
         counts => total, live => live_total, channel_width => 0.01171875, fwhm => 0.024, fwhm_at => 1.0,
         blank => (SELECT counts, live FROM Backgrounds WHERE kind = 'LaBr3'),
         lines => (SELECT energy, name FROM Lines)) AS P;

-- What detectors of different kinds have seen of a burst, within half a second, taken together.
CREATE QUERY fused AS
SELECT box, burst, exposure, $verdict AS verdict, class, material, $confidence AS confidence,
       suspicion, lines
FROM  (SELECT A.box AS box, A.burst AS burst, A.exposure AS exposure, A.lines AS lines,
              (A.suspicion + B.suspicion + C.suspicion) / 3 AS suspicion,
              GREATEST(A.significance, B.significance, C.significance) AS significance,
              CASE WHEN A.class = B.class OR A.class = C.class THEN A.class
                   ELSE B.class END AS class,
              CASE WHEN A.material = B.material OR A.material = C.material THEN A.material
                   ELSE B.material END AS material
       FROM   verdicts A, verdicts B, verdicts C
       WINDOW = 0.5 SECONDS
       WHERE  A.detector = 1 AND B.detector = 2 AND C.detector = 3
          AND A.box = B.box AND B.box = C.box) AS F;

-- The recommendation goes to the belt, which lets a safe box go on and diverts a suspect one.
CREATE DELIVERY recommendations FROM fused TO webhook
WITH (url = '$recommendations', secret = '$secret')
