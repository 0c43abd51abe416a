// A chart that moves as points come; it keeps the newest ones and takes its colours from the page.
import { echarts } from "nicegui-echart";

// As many as COLOURS in chart_points.py.
export const LIGHT = ["#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1864ab", "#996600", "#495057"];
export const DARK = ["#3bc9db", "#ffa94d", "#b197fc", "#69db7c", "#faa2c1", "#74c0fc", "#ffd43b", "#ced4da"];

const SHARED = -1;
const MOST_TOLD = 12;
const FEW = 40; // points of a line that are marked one by one
const QUIET = 1500; // milliseconds without a point
const RECENT = 3600000; // what a page begins with may be so old, and time has gone on since
const LIVE = 600000; // results whose times are so near to the clock come from sensors of today

const two = (number) => String(number).padStart(2, "0");
const date = (when) => `${when.getUTCFullYear()}-${two(when.getUTCMonth() + 1)}-${two(when.getUTCDate())}`;
const clock = (when) => `${two(when.getUTCHours())}:${two(when.getUTCMinutes())}:${two(when.getUTCSeconds())}`;

// An instant in UTC, to the millisecond.
export const instant = (millis) => {
  const when = new Date(millis);
  return `${date(when)} ${clock(when)}.${String(when.getUTCMilliseconds()).padStart(3, "0")} UTC`;
};

// A number with as many digits as people read.
export const digits = (value) => {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en").replaceAll(",", " ");
  return size !== 0 && (size < 1e-4 || size >= 1e9) ? value.toExponential(3) : String(Number(value.toPrecision(5)));
};

// What a line says at an instant: its newest value until then; before its first point, nothing.
export const valueAt = (points, millis) => {
  let low = 0, high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= millis) low = middle + 1;
    else high = middle;
  }
  return low ? points[low - 1][1] : null;
};

export default {
  template: '<div class="nm-chart" role="img" :aria-label="label"></div>',
  props: { label: String, points: Number, matches: Number },
  mounted() {
    this.series = new Map();
    this.colours = new Map();
    this.lanes = [];
    this.results = [];
    this.arrived = 0;
    this.timer = setInterval(() => { if (this.isQuiet()) this.draw(false); }, 1000);
    this.chart = echarts.init(this.$el, null, { renderer: "canvas", useCoarsePointer: true });
    this.size = new ResizeObserver(() => this.chart.resize());
    this.size.observe(this.$el);
    this.theme = new MutationObserver(() => this.draw(true));
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  },
  beforeUnmount() {
    clearInterval(this.timer);
    this.size.disconnect();
    this.theme.disconnect();
    this.chart.dispose();
  },
  methods: {
    begin(lanes) {
      this.series.clear();
      this.colours.clear();
      this.results = [];
      this.arrived = 0;
      this.lanes = lanes;
      this.draw(true);
    },
    // points: [[name, number of its colour, [[milliseconds, value], …]], …]; now: by the server's clock
    add_points(points, now) {
      for (const [name, colour, more] of points) {
        const kept = (this.series.get(name) ?? []).concat(more);
        kept.sort((one, other) => one[0] - other[0]); // what comes late is drawn where it belongs
        this.series.set(name, kept.slice(-this.points));
        this.colours.set(name, colour);
      }
      this.trim();
      this.note(now);
      this.draw(false);
    },
    // What is long gone in one series must not stretch the axis of all.
    trim() {
      const starts = Array.from(this.series.values(), (one) => (one.length >= this.points ? one[0][0] : -Infinity));
      const first = Math.max(...starts);
      for (const [name, kept] of this.series) {
        const near = kept.filter((point) => point[0] >= first);
        if (near.length) this.series.set(name, near);
        else this.series.delete(name);
      }
    },
    // matches: for each result the times of its lanes.
    add_matches(matches, now) {
      this.results = this.results.concat(matches).slice(-this.matches);
      this.note(now);
      this.draw(false);
    },
    // Something came just now. What a page begins with came when it says, so that silence before the page was opened is seen, too.
    note(now) {
      const age = this.arrived ? 0 : now - this.newest();
      this.arrived = Date.now() - (age > 0 && age < RECENT ? age : 0);
    },
    names() {
      const compare = new Intl.Collator("en", { numeric: true }).compare;
      const last = (name) => Number(this.colours.get(name) === SHARED);
      return Array.from(this.series.keys()).sort((a, b) => last(a) - last(b) || compare(a, b));
    },
    // Every line has its say, also those that have no point at just this instant.
    tooltip(shown) {
      const millis = shown[0].axisValue;
      const markers = new Map(shown.map((one) => [one.seriesName, one.marker]));
      const hidden = this.chart.getOption().legend?.[0]?.selected ?? {};
      const lines = this.names()
        .filter((name) => hidden[name] !== false)
        .map((name) => [name, valueAt(this.series.get(name), millis)])
        .filter(([, value]) => value !== null)
        .map(([name, value]) => `${markers.get(name) ?? "   "}${name.slice(0, 40)}: ${digits(value)}`);
      const more = lines.length > MOST_TOLD ? [`and ${lines.length - MOST_TOLD} more`] : [];
      return [instant(millis), ...lines.slice(0, MOST_TOLD), ...more].join("\n");
    },
    matchTooltip(shown) {
      const times = this.results[shown.dataIndex];
      if (!times) return "";
      return this.lanes.map((lane, i) => `${lane}: ${instant(times[i])}`).join("\n");
    },
    draw(anew) {
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(`--nm-${name}`).trim();
      const palette = document.body.classList.contains("body--dark") ? DARK : LIGHT;
      const base = {
        useUTC: true,
        animation: false,
        color: palette,
        textStyle: { fontFamily: "Roboto, system-ui, sans-serif", color: colour("soft") },
        tooltip: {
          trigger: this.lanes.length ? "item" : "axis",
          formatter: this.lanes.length ? (shown) => this.matchTooltip(shown) : (shown) => this.tooltip(shown),
          confine: true,
          renderMode: "richText",
          backgroundColor: colour("card"),
          borderColor: colour("line"),
          textStyle: { color: colour("ink"), fontSize: 13 },
        },
      };
      const axis = { axisLine: { lineStyle: { color: colour("line") } }, axisTick: { show: false }, axisLabel: { color: colour("soft"), hideOverlap: true, fontSize: 12, margin: 10 }, splitLine: { lineStyle: { color: colour("line") } } };
      const isEmpty = !Number.isFinite(this.newest());
      const time = { type: "time", show: !isEmpty, max: this.until(), ...axis, axisLine: { ...axis.axisLine, onZero: false }, axisLabel: { ...axis.axisLabel, formatter: (millis) => clock(new Date(millis)) }, name: this.day(), nameLocation: "end", nameGap: 0, nameTextStyle: { color: colour("soft"), fontSize: 12, align: "right", verticalAlign: "top", padding: [28, 0, 0, 0] } };
      this.chart.setOption({ ...base, ...(this.lanes.length ? this.timeline(axis, time, colour, palette) : this.lines(axis, time, colour, palette)) }, { notMerge: anew, replaceMerge: ["series"] });
    },
    newest() {
      return Math.max(...Array.from(this.series.values(), (one) => one.at(-1)[0]), ...this.results.map((one) => Math.max(...one)));
    },
    isQuiet() {
      return this.arrived > 0 && Date.now() - this.arrived > QUIET;
    },
    // Where the axis ends: time goes on though nothing comes, so that silence is seen as a gap. What is long past is left as it is.
    until() {
      const newest = this.newest();
      return this.isQuiet() && Math.abs(newest - this.arrived) < LIVE ? newest + Date.now() - this.arrived : null;
    },
    // The day of the newest point: a clock alone says little.
    day() {
      const newest = this.newest();
      return Number.isFinite(newest) ? `${date(new Date(newest))} UTC` : "UTC";
    },
    lines(axis, time, colour, palette) {
      const names = this.names();
      const hasMarks = names.every((name) => this.series.get(name).length < FEW);
      const painted = (name) => (this.colours.get(name) === SHARED ? colour("soft") : palette[this.colours.get(name)]);
      return {
        grid: { left: 12, right: 34, top: names.length > 1 ? 44 : 20, bottom: 28, containLabel: true },
        legend: { show: names.length > 1, type: "scroll", top: 4, left: 8, right: 8, icon: "roundRect", itemWidth: 12, itemHeight: 12, textStyle: { color: colour("ink") }, pageIconColor: colour("accent"), pageTextStyle: { color: colour("soft") } },
        xAxis: { ...time, splitLine: { show: false } },
        yAxis: { type: "value", scale: true, ...axis, axisLine: { show: false } },
        series: names.map((name) => this.line(name, this.series.get(name), painted(name), this.colours.get(name) === SHARED, hasMarks)),
      };
    },
    line(name, data, color, isShared, hasMarks) {
      const style = isShared ? { width: 1.5, type: "dashed", color } : { width: 1.8, color };
      return { type: "line", name, data, showSymbol: hasMarks, symbolSize: 5, lineStyle: style, itemStyle: { color } };
    },
    timeline(axis, time, colour, palette) {
      const newest = this.results.length - 1;
      const lines = this.results.map((times, i) => ({
        coords: times.map((time, lane) => [time, this.lanes[lane]]),
        lineStyle: { opacity: 0.25 + (0.6 * i) / Math.max(1, newest) },
      }));
      const dots = this.lanes.map((lane, number) => ({
        type: "scatter", name: lane, symbolSize: 8, itemStyle: { color: palette[number % palette.length] },
        data: this.results.map((times) => [times[number], lane]),
      }));
      return {
        grid: { left: 12, right: 34, top: 20, bottom: 28, containLabel: true },
        legend: { show: false },
        xAxis: time,
        yAxis: { type: "category", data: this.lanes, inverse: true, boundaryGap: true, ...axis, axisLabel: { ...axis.axisLabel, color: colour("ink"), fontSize: 13 } },
        series: [{ type: "lines", name: "matches", coordinateSystem: "cartesian2d", polyline: true, silent: true, data: lines, lineStyle: { color: colour("accent"), width: 1.5 } }, ...dots],
      };
    },
  },
};
