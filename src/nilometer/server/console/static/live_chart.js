// A chart that moves as points come; it keeps the newest ones and takes its colours from the page.
import { echarts } from "nicegui-echart";

const LIGHT = ["#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1864ab", "#996600", "#495057"];
const DARK = ["#3bc9db", "#ffa94d", "#b197fc", "#69db7c", "#faa2c1", "#74c0fc", "#ffd43b", "#ced4da"];

const OTHERS = " of others";
const CLOCK = "{HH}:{mm}:{ss}";

export default {
  template: '<div class="nm-chart" role="img" :aria-label="label"></div>',
  props: { label: String, points: Number, matches: Number },
  mounted() {
    this.series = new Map();
    this.lanes = [];
    this.results = [];
    this.still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.chart = echarts.init(this.$el, null, { renderer: "canvas", useCoarsePointer: true });
    this.size = new ResizeObserver(() => this.chart.resize());
    this.size.observe(this.$el);
    this.theme = new MutationObserver(() => this.draw(true));
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  },
  beforeUnmount() {
    this.size.disconnect();
    this.theme.disconnect();
    this.chart.dispose();
  },
  methods: {
    begin(lanes) {
      this.series.clear();
      this.results = [];
      this.lanes = lanes;
      this.draw(true);
    },
    // points: [[name, [[milliseconds, value], …]], …]
    add_points(points) {
      for (const [name, more] of points) {
        const kept = (this.series.get(name) ?? []).concat(more);
        this.series.set(name, kept.slice(-this.points));
      }
      this.trim();
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
    add_matches(matches) {
      this.results = this.results.concat(matches).slice(-this.matches);
      this.draw(false);
    },
    draw(anew) {
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(`--nm-${name}`).trim();
      const dark = document.body.classList.contains("body--dark");
      const base = {
        useUTC: true,
        animation: false,
        color: dark ? DARK : LIGHT,
        textStyle: { fontFamily: "Roboto, system-ui, sans-serif", color: colour("soft") },
        tooltip: {
          trigger: this.lanes.length ? "item" : "axis",
          confine: true,
          renderMode: "richText",
          backgroundColor: colour("card"),
          borderColor: colour("line"),
          textStyle: { color: colour("ink"), fontSize: 13 },
        },
      };
      const axis = { axisLine: { lineStyle: { color: colour("line") } }, axisTick: { show: false }, axisLabel: { color: colour("soft"), hideOverlap: true, fontSize: 12, margin: 10 }, splitLine: { lineStyle: { color: colour("line") } } };
      this.chart.setOption({ ...base, ...(this.lanes.length ? this.timeline(axis, colour, dark) : this.lines(axis, colour)) }, { notMerge: anew, replaceMerge: ["series"] });
    },
    lines(axis, colour) {
      const names = Array.from(this.series.keys());
      return {
        grid: { left: 12, right: 34, top: names.length > 1 ? 44 : 20, bottom: 8, containLabel: true },
        legend: { show: names.length > 1, type: "scroll", top: 4, left: 8, right: 8, icon: "roundRect", itemWidth: 12, itemHeight: 4, textStyle: { color: colour("ink") }, pageIconColor: colour("accent"), pageTextStyle: { color: colour("soft") } },
        xAxis: { type: "time", ...axis, axisLabel: { ...axis.axisLabel, formatter: CLOCK }, splitLine: { show: false } },
        yAxis: { type: "value", scale: true, ...axis, axisLine: { show: false } },
        series: names.map((name) => this.line(name, this.series.get(name), name.endsWith(OTHERS) ? colour("soft") : undefined)),
      };
    },
    line(name, data, own) {
      const style = own ? { width: 1.5, type: "dashed", color: own } : { width: 1.8 };
      return { type: "line", name, data, showSymbol: data.length < 40, symbolSize: 5, lineStyle: style, itemStyle: own ? { color: own } : {} };
    },
    timeline(axis, colour, dark) {
      const palette = dark ? DARK : LIGHT;
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
        grid: { left: 12, right: 34, top: 20, bottom: 8, containLabel: true },
        legend: { show: false },
        xAxis: { type: "time", ...axis, axisLabel: { ...axis.axisLabel, formatter: CLOCK } },
        yAxis: { type: "category", data: this.lanes, inverse: true, boundaryGap: true, ...axis, axisLabel: { ...axis.axisLabel, color: colour("ink"), fontSize: 13 } },
        series: [{ type: "lines", name: "matches", coordinateSystem: "cartesian2d", polyline: true, silent: true, data: lines, lineStyle: { color: colour("accent"), width: 1.5 } }, ...dots],
      };
    },
  },
};
