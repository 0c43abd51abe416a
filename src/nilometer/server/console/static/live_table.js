// A table of the newest rows. Values come as text and are only ever set as text.
const UNITS = [[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "kB"]];

const MOST_LIT = 40; // to light up more rows at once takes a browser seconds, and tells nobody anything
const today = () => new Date().toISOString().slice(0, 10);

// A size in the unit that fits.
const sized = (bytes) => {
  const [unit, name] = UNITS.find(([unit]) => bytes >= unit) ?? [1, "bytes"];
  return unit === 1 ? `${bytes} bytes` : `${(bytes / unit).toFixed(1)} ${name}`;
};

// A length of time, roughly.
const SPANS = [[86400, "d"], [3600, "h"], [60, "min"], [0, "s"]];
const spanned = (micros) => {
  const seconds = Number(micros) / 1e6;
  const [length, name] = SPANS.find(([length]) => Math.abs(seconds) >= length);
  return `${(seconds / (length || 1)).toFixed(1)} ${name}`;
};

export default {
  template: `
    <div class="nm-table" tabindex="0" role="region" :aria-label="label">
      <p class="nm-zone" ref="zone" hidden></p>
      <table><thead><tr></tr></thead><tbody></tbody></table>
      <p class="nm-empty" ref="empty">{{ waiting }}</p>
    </div>`,
  props: { label: String, waiting: String, most: Number },
  mounted() {
    this.columns = [];
    this.head = this.$el.querySelector("tr");
    this.body = this.$el.querySelector("tbody");
  },
  methods: {
    begin(columns, waiting) {
      this.columns = columns;
      this.time = columns.findIndex((column) => column.is_order);
      this.head.replaceChildren(...columns.map((column) => this.cell("th", column.name, column, column.type)));
      this.body.replaceChildren();
      this.$refs.empty.textContent = waiting;
      this.$refs.zone.hidden = !columns.some((column) => column.is_time);
      this.$refs.zone.textContent = `Times are UTC; those without a date are of today, ${today()}.`;
      this.showEmpty();
    },
    // Rows that came; the newest stand on top, those of the same instant as they came.
    add(rows) {
      const isLit = this.body.childElementCount > 0 && rows.length <= MOST_LIT;
      const newer = (one, other) => this.time >= 0 && one.nilometerTime > other.nilometerTime;
      for (const values of rows.slice(-this.most)) {
        const row = this.row(values, isLit);
        let below = this.body.firstElementChild;
        while (below && newer(below, row)) below = below.nextElementSibling;
        this.body.insertBefore(row, below);
      }
      while (this.body.childElementCount > this.most) this.body.lastElementChild.remove();
      this.showEmpty();
    },
    // All rows anew; those that were not there before are lit up for a moment.
    replace(rows, empty) {
      this.$refs.empty.textContent = empty;
      const before = new Set(Array.from(this.body.children, (row) => row.nilometer));
      const wasEmpty = !before.size;
      this.body.replaceChildren(...rows.slice(0, this.most).map((values) => {
        const row = this.row(values, !wasEmpty && rows.length <= MOST_LIT);
        if (before.has(row.nilometer)) row.className = "";
        return row;
      }));
      this.showEmpty();
    },
    showEmpty() {
      this.$refs.empty.hidden = this.body.childElementCount > 0;
    },
    row(values, isLit) {
      const row = document.createElement("tr");
      if (isLit) row.className = "nm-fresh";
      row.nilometer = JSON.stringify(values);
      row.nilometerTime = String(values[this.time] ?? "");
      row.append(...values.map((value, i) => this.cell("td", value, this.columns[i] ?? {})));
      return row;
    },
    cell(tag, value, column, title) {
      const cell = document.createElement(tag);
      if (column.is_number) cell.className = "nm-number";
      if (value === null) {
        cell.classList.add("nm-null");
        cell.textContent = "NULL";
      } else if (column.is_time && tag === "td") {
        this.instant(cell, value);
      } else if (column.is_span && tag === "td") {
        cell.textContent = spanned(value);
        cell.title = `${value} microseconds`;
      } else if (column.is_size && tag === "td") {
        cell.textContent = sized(Number(value));
        cell.title = `${value} bytes`;
      } else {
        const text = typeof value === "object" ? JSON.stringify(value) : String(value);
        cell.textContent = typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(7)) : text;
        if (tag === "td" && cell.textContent.length > 24) cell.title = text;
      }
      if (title) cell.title = title;
      return cell;
    },
    instant(cell, value) {
      const [date, clock] = String(value).replace("Z", "").split("T");
      const day = document.createElement("span");
      day.textContent = clock === undefined ? date : date === today() ? "" : `${date} `;
      cell.append(day, (clock ?? "").slice(0, 12));
      cell.title = clock === undefined ? value : `${value} (UTC)`;
      cell.classList.add("nm-time");
    },
  },
};
