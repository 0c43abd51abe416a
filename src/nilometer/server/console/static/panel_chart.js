// One chart of a dashboard: what it draws comes whole, thinned by the server. Dragging along the time asks for that range.
import { echarts } from "nicegui-echart";
import { DARK, LIGHT, digits, instant, valueAt } from "/_console/live_chart.js";

const DAY = 86400000;
const LIGHT_SCALE = ["#a9dbe4", "#0b7285", "#e8590c"];
const DARK_SCALE = ["#1d5563", "#3bc9db", "#ffc078"];
const MOST_TOLD = 12;
const MOST_NAMED = 40; // places of a map with their names beside them

const two = (number) => String(number).padStart(2, "0");

// A time on an axis of this length: to the second, the minute or the day.
export const tick = (millis, length) => {
  const when = new Date(millis);
  const day = `${two(when.getUTCMonth() + 1)}-${two(when.getUTCDate())}`;
  const clock = `${two(when.getUTCHours())}:${two(when.getUTCMinutes())}`;
  if (length > 20 * DAY) return day;
  if (length > DAY * 1.5) return `${day} ${clock}`;
  if (length > 7200000) return clock;
  const seconds = `${clock}:${two(when.getUTCSeconds())}`;
  return length > 5000 ? seconds : `${seconds}.${String(when.getUTCMilliseconds()).padStart(3, "0")}`;
};

export default {
  template: '<div class="nm-chart nm-panel-chart" role="img" :aria-label="label"></div>',
  props: { label: String, picture: Object },
  emits: ["range"],
  mounted() {
    this.colours = new Map();
    this.isDragged = false;
    this.chart = echarts.init(this.$el, null, { renderer: "canvas", useCoarsePointer: true });
    this.size = new ResizeObserver(() => this.chart.resize());
    this.size.observe(this.$el);
    this.theme = new MutationObserver(() => this.draw());
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.chart.on("brushEnd", (event) => this.brushed(event));
    this.chart.getZr().on("mousedown", () => { this.isDragged = true; });
    this.chart.getZr().on("globalout", () => { this.isDragged = false; });
    this.release = () => { this.isDragged = false; };
    window.addEventListener("mouseup", this.release);
    this.draw();
  },
  beforeUnmount() {
    window.removeEventListener("mouseup", this.release);
    this.size.disconnect();
    this.theme.disconnect();
    this.chart.dispose();
  },
  watch: {
    picture() { if (!this.isDragged) this.draw(); },
  },
  methods: {
    // Time goes on though nothing has come.
    move(low, high) {
      if (this.isDragged || !this.picture?.is_time) return;
      this.moved = [low, high];
      this.chart.setOption({ xAxis: { min: low, max: high } });
    },
    brushed(event) {
      this.isDragged = false;
      const range = event.areas?.[0]?.coordRange;
      this.chart.dispatchAction({ type: "brush", areas: [] });
      if (range && range[1] - range[0] >= 1) this.$emit("range", { start: range[0], end: range[1] });
    },
    // The colour of a name stays as long as the chart does.
    colour(name, palette) {
      if (!this.colours.has(name)) this.colours.set(name, this.colours.size);
      return palette[this.colours.get(name) % palette.length];
    },
    draw() {
      const picture = this.picture;
      if (!picture?.kind) return;
      this.moved = null;
      const style = getComputedStyle(document.documentElement);
      const css = (name) => style.getPropertyValue(`--nm-${name}`).trim();
      const palette = document.body.classList.contains("body--dark") ? DARK : LIGHT;
      const kinds = { line: this.lines, bar: this.bars, "heat map": this.heat, map: this.places };
      const base = {
        useUTC: true,
        animation: false,
        textStyle: { fontFamily: "Roboto, system-ui, sans-serif", color: css("soft") },
        tooltip: { confine: true, renderMode: "richText", backgroundColor: css("card"), borderColor: css("line"), textStyle: { color: css("ink"), fontSize: 13 } },
      };
      const look = { css, palette, axis: this.axis(css) };
      const own = kinds[picture.kind].call(this, picture, look);
      const tooltip = { ...base.tooltip, ...own.tooltip };
      this.chart.setOption({ ...base, ...own, tooltip, ...this.brush(picture, css) }, { notMerge: true });
      if (this.isZoomed(picture)) {
        const brushOption = { brushType: "lineX", brushMode: "single" };
        this.chart.dispatchAction({ type: "takeGlobalCursor", key: "brush", brushOption });
      }
    },
    // A finger that is drawn across a chart scrolls the page.
    isZoomed(picture) {
      return Boolean(picture.is_time) && picture.kind !== "heat map" && matchMedia("(pointer: fine)").matches;
    },
    brush(picture, css) {
      if (!this.isZoomed(picture)) return {};
      const look = { borderWidth: 1, color: "rgba(59, 201, 219, 0.18)", borderColor: css("accent") };
      return { toolbox: { show: false }, brush: { xAxisIndex: 0, brushMode: "single", brushStyle: look, transformable: false } };
    },
    axis(css) {
      return {
        axisLine: { lineStyle: { color: css("line") } },
        axisTick: { show: false },
        axisLabel: { color: css("soft"), hideOverlap: true, fontSize: 12, margin: 10 },
        splitLine: { lineStyle: { color: css("line") } },
      };
    },
    grid(hasLegend, hasDay = true) {
      return { left: 12, right: 22, top: hasLegend ? 40 : 16, bottom: hasDay ? 26 : 8, containLabel: true };
    },
    legend(names, css) {
      return { show: names.length > 1, type: "scroll", top: 4, left: 8, right: 8, icon: "roundRect", itemWidth: 12, itemHeight: 12, textStyle: { color: css("ink") }, pageIconColor: css("accent"), pageTextStyle: { color: css("soft") } };
    },
    // The axis of times, as long as the range; the day stands at its end.
    time(picture, { css, axis }) {
      const length = picture.high - picture.low;
      if (!picture.is_time) return { type: "value", scale: true, ...axis, splitLine: { show: false } };
      const day = new Date(picture.high).toISOString().slice(0, 10);
      return {
        type: "time", min: picture.low, max: picture.high, splitNumber: 5, ...axis, splitLine: { show: false }, axisLine: { ...axis.axisLine, onZero: false },
        axisLabel: { ...axis.axisLabel, formatter: (millis) => tick(millis, length) },
        name: `${day} UTC`, nameLocation: "end", nameGap: 0,
        nameTextStyle: { color: css("soft"), fontSize: 12, align: "right", verticalAlign: "top", padding: [28, 0, 0, 0] },
      };
    },
    value({ axis }) {
      return { type: "value", scale: true, splitNumber: 4, ...axis, axisLine: { show: false } };
    },
    withUnit(value) {
      return this.picture.unit ? `${digits(value)} ${this.picture.unit}` : digits(value);
    },
    place(value) {
      return this.picture.is_time ? instant(value) : digits(value);
    },
    // Every line has its say, also those that have no point at just this place.
    tooltip(shown) {
      const at = shown[0].axisValue;
      const markers = new Map(shown.map((one) => [one.seriesName, one.marker]));
      const hidden = this.chart.getOption().legend?.[0]?.selected ?? {};
      const lines = this.picture.lines
        .filter((one) => hidden[one.name] !== false)
        .map((one) => [one.name, valueAt(one.data, at)])
        .filter(([, value]) => value !== null)
        .map(([name, value]) => `${markers.get(name) ?? "   "}${name.slice(0, 40)}: ${this.withUnit(value)}`);
      const more = lines.length > MOST_TOLD ? [`and ${lines.length - MOST_TOLD} more`] : [];
      return [this.place(at), ...lines.slice(0, MOST_TOLD), ...more].join("\n");
    },
    lines(picture, look) {
      const names = picture.lines.map((one) => one.name);
      return {
        grid: this.grid(names.length > 1, picture.is_time),
        legend: this.legend(names, look.css),
        tooltip: { trigger: "axis", formatter: (shown) => this.tooltip(shown) },
        xAxis: this.time(picture, look),
        yAxis: this.value(look),
        series: picture.lines.map(({ name, data }) => {
          const color = this.colour(name, look.palette);
          return { type: "line", name, data, step: picture.steps ? "end" : false, showSymbol: data.length < 30, symbolSize: 5, lineStyle: { width: 1.7, color }, itemStyle: { color } };
        }),
      };
    },
    bars(picture, look) {
      const names = picture.lines.map((one) => one.name);
      const middle = (data) => data.map(([start, value]) => [start + picture.step / 2, value]);
      const category = { type: "category", data: picture.names, ...look.axis, splitLine: { show: false } };
      const tooltip = (shown) => [
        picture.is_time ? instant(shown[0].value[0] - picture.step / 2) : shown[0].name,
        ...shown.map((one) => [one, Array.isArray(one.value) ? one.value[1] : one.value])
          .filter(([, value]) => value !== null && value !== undefined)
          .map(([one, value]) => `${one.marker}${one.seriesName.slice(0, 40)}: ${this.withUnit(value)}`),
      ].join("\n");
      return {
        grid: this.grid(names.length > 1, picture.is_time),
        legend: this.legend(names, look.css),
        tooltip: { trigger: "axis", axisPointer: { type: "shadow" }, formatter: tooltip },
        xAxis: picture.is_time ? this.time(picture, look) : category,
        yAxis: { ...this.value(look), scale: false },
        series: picture.lines.map(({ name, data }) => ({
          type: "bar", name, data: picture.is_time ? middle(data) : data, stack: picture.is_stacked ? "all" : null,
          barMaxWidth: picture.is_time ? 26 : 64, itemStyle: { color: this.colour(name, look.palette), borderRadius: picture.is_stacked ? 0 : [3, 3, 0, 0] },
        })),
      };
    },
    heat(picture, look) {
      const { css, axis } = look;
      const values = picture.cells.map((one) => one[2]);
      const length = picture.columns.at(-1) - picture.columns[0];
      const label = (place) => (picture.is_time ? tick(place, length) : digits(place));
      const tooltip = ({ value: [column, row, value] }) =>
        [this.place(picture.columns[column]), `${picture.names[row]}: ${this.withUnit(value)}`].join("\n");
      return {
        grid: { ...this.grid(false, false), right: 64 },
        tooltip: { trigger: "item", formatter: tooltip },
        xAxis: { type: "category", data: picture.columns.map(label), ...axis, splitLine: { show: false } },
        yAxis: { type: "category", data: picture.names, inverse: true, ...axis, axisLine: { show: false }, splitLine: { show: false }, axisLabel: { ...axis.axisLabel, color: css("ink"), width: 110, overflow: "truncate" } },
        visualMap: this.scale(Math.min(...values), Math.max(...values), css),
        series: [{ type: "heatmap", data: picture.cells, progressive: 0, itemStyle: { borderWidth: 1, borderColor: css("card") } }],
      };
    },
    scale(low, high, css) {
      return {
        min: low, max: high > low ? high : low + 1, calculable: false, right: 4, top: "middle", itemHeight: 110, itemWidth: 10,
        text: [digits(high), digits(low)], textStyle: { color: css("soft"), fontSize: 11 },
        inRange: { color: document.body.classList.contains("body--dark") ? DARK_SCALE : LIGHT_SCALE },
      };
    },
    places(picture, look) {
      const { css, axis } = look;
      const values = picture.places.map((one) => one.value).filter((one) => one !== null);
      const isColoured = picture.is_coloured && values.length > 0;
      const tooltip = ({ data }) =>
        [data.name, `${digits(data.value[0])}, ${digits(data.value[1])}`, ...(isColoured && data.shown !== null ? [`${picture.value}: ${this.withUnit(data.shown)}`] : [])].join("\n");
      const around = { type: "value", scale: true, boundaryGap: ["8%", "8%"], splitNumber: 4, ...axis };
      return {
        grid: { ...this.grid(false, false), right: isColoured ? 74 : 22 },
        tooltip: { trigger: "item", formatter: tooltip },
        xAxis: around,
        yAxis: around,
        ...(isColoured ? { visualMap: { ...this.scale(Math.min(...values), Math.max(...values), css), dimension: 2 } } : {}),
        series: [{
          type: "scatter", symbolSize: 16, itemStyle: { borderColor: css("card"), borderWidth: 1.5, color: isColoured ? undefined : css("accent") },
          label: { show: picture.places.length <= MOST_NAMED, position: "right", color: css("ink"), fontSize: 12, formatter: ({ data }) => data.name.slice(0, 24) },
          labelLayout: { hideOverlap: true },
          data: picture.places.map(({ name, at, value }) => ({ name, shown: value, value: isColoured ? [...at, value ?? values[0]] : at })),
        }],
      };
    },
  },
};
