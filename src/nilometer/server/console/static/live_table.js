// A table of the newest rows. Values come as text and are only ever set as text.
export default {
  template: `
    <div class="nm-table" tabindex="0" role="region" :aria-label="label">
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
    begin(columns) {
      this.columns = columns;
      this.head.replaceChildren(...columns.map((column) => this.cell("th", column.name, column, column.type)));
      this.body.replaceChildren();
      this.showEmpty();
    },
    // Rows that came, the oldest first; the newest stand on top.
    add(rows) {
      const fresh = rows.slice(-this.most).reverse().map((row) => this.row(row));
      this.body.prepend(...fresh);
      while (this.body.childElementCount > this.most) this.body.lastElementChild.remove();
      this.showEmpty();
    },
    // All rows anew; those that were not there before are lit up for a moment.
    replace(rows) {
      const before = new Set(Array.from(this.body.children, (row) => row.nilometer));
      const wasEmpty = !before.size;
      this.body.replaceChildren(...rows.slice(0, this.most).map((values) => {
        const row = this.row(values);
        if (wasEmpty || before.has(row.nilometer)) row.className = "";
        return row;
      }));
      this.showEmpty();
    },
    showEmpty() {
      this.$refs.empty.hidden = this.body.childElementCount > 0;
    },
    row(values) {
      const row = document.createElement("tr");
      row.className = "nm-fresh";
      row.nilometer = JSON.stringify(values);
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
        this.time(cell, value);
      } else {
        const text = typeof value === "object" ? JSON.stringify(value) : String(value);
        cell.textContent = typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(7)) : text;
        if (tag === "td" && cell.textContent.length > 24) cell.title = text;
      }
      if (title) cell.title = title;
      return cell;
    },
    time(cell, value) {
      const [date, clock] = String(value).replace("Z", "").split("T");
      const day = document.createElement("span");
      day.textContent = date === new Date().toISOString().slice(0, 10) ? "" : `${date} `;
      cell.append(day, (clock ?? "").slice(0, 12));
      cell.title = value;
      cell.classList.add("nm-time");
    },
  },
};
