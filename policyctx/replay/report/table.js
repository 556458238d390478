// A table to sort, search and page through.
//
// A column has a `title`, and `of(row)` gives what it sorts by. It may have `show(row)`, a text or
// an element in place of that; `search(row)`, the words to be found by; and be `numeric`, or
// `words`, which are given room. `rowNames` say what one row is, and what many are. A `filter` has a
// `title`, and `names` for the kinds of rows that `of(row)` tells apart. A table of few rows may do
// without a search: `hasFinder`.

// Fewer where a row is a card as wide as the screen.
const NARROW = window.matchMedia("(max-width: 40rem)");

const ANY = "any";
// Many times quicker than `localeCompare`.
const collator = new Intl.Collator("en", { numeric: true });

function compared(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return collator.compare(String(one), String(other));
}

function shownIn(column, row) {
  if (column.show) return column.show(row);
  const value = column.of(row);
  return typeof value === "number" ? whole(value) : value;
}

function searchable(columns, row) {
  const words = columns.map((column) => (column.search ? column.search(row) : column.of(row)));
  return words.join(" ").toLowerCase();
}

class DataTable {
  constructor({
    name,
    columns,
    rows,
    sort = null,
    descending = false,
    rowNames = ["row", "rows"],
    filter = null,
    hasFinder = true,
  }) {
    Object.assign(this, { name, columns, rows, sort, descending, rowNames, filter });
    this.kind = ANY;
    this.texts = new Map();
    this.pageRows = NARROW.matches ? 8 : 20;
    this.page = 0;
    this.query = "";
    this.body = element("tbody", { role: "rowgroup" });
    this.count = element("output", { "aria-live": "polite" });
    this.before = element("button", { type: "button", onclick: () => this.turn(-1) }, "Previous");
    this.after = element("button", { type: "button", onclick: () => this.turn(1) }, "Next");
    this.pager = element(
      "nav",
      { class: "pager", "aria-label": `Pages: ${name}` },
      this.before,
      this.after,
    );
    this.headers = columns.map((column, i) => this.header(column, i));
    const finder = hasFinder ? this.finder() : null;
    this.element = element("div", {}, finder, this.scroller(), this.pager);
    this.find();
  }

  header(column, i) {
    const button = element(
      "button",
      { type: "button", onclick: () => this.sortBy(i) },
      column.title,
    );
    const classes = column.numeric ? "number" : null;
    return element("th", { scope: "col", role: "columnheader", class: classes }, button);
  }

  finder() {
    const input = element("input", {
      type: "search",
      autocomplete: "off",
      oninput: () => {
        this.query = input.value;
        this.find();
      },
    });
    const label = element("label", {}, `Search ${this.rowNames[1]}`, input);
    const kinds = this.filter ? this.kinds() : null;
    return element("div", { class: "finder", role: "search" }, label, kinds, this.count);
  }

  // Returns a choice of the kind of rows that are shown.
  kinds() {
    const { title, of, names } = this.filter;
    const numbers = new Map();
    for (const row of this.rows) numbers.set(of(row), (numbers.get(of(row)) || 0) + 1);
    const option = (value, name, number) =>
      element("option", { value }, `${name} (${whole(number)})`);
    const options = Object.entries(names).map(([kind, name]) =>
      option(kind, name, numbers.get(kind) || 0),
    );
    const select = element(
      "select",
      {
        autocomplete: "off",
        onchange: () => {
          this.kind = select.value;
          this.find();
        },
      },
      option(ANY, "All", this.rows.length),
      ...options,
    );
    return element("label", { class: "kinds" }, title, select);
  }

  scroller() {
    const head = element(
      "thead",
      { role: "rowgroup" },
      element("tr", { role: "row" }, ...this.headers),
    );
    const caption = element("caption", {}, this.name);
    const table = element("table", { role: "table", class: "stacks" }, caption, head, this.body);
    return element(
      "div",
      { class: "scroll", role: "region", tabindex: "0", "aria-label": this.name },
      table,
    );
  }

  sortBy(i) {
    // Numbers are looked at from the largest on.
    this.descending = this.sort === i ? !this.descending : Boolean(this.columns[i].numeric);
    this.sort = i;
    this.find();
  }

  turn(by) {
    this.page += by;
    this.draw();
    if (this.before.disabled && by < 0) this.after.focus();
    if (this.after.disabled && by > 0) this.before.focus();
  }

  textOf(row) {
    if (!this.texts.has(row)) this.texts.set(row, searchable(this.columns, row));
    return this.texts.get(row);
  }

  find() {
    const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
    const isOfKind = (row) => this.kind === ANY || this.filter.of(row) === this.kind;
    this.found = this.rows.filter(
      (row) => isOfKind(row) && words.every((word) => this.textOf(row).includes(word)),
    );
    if (this.sort !== null) {
      const column = this.columns[this.sort];
      const sign = this.descending ? -1 : 1;
      this.found.sort((one, other) => sign * compared(column.of(one), column.of(other)));
    }
    this.page = 0;
    this.draw();
  }

  draw() {
    const pages = Math.max(1, Math.ceil(this.found.length / this.pageRows));
    const first = this.page * this.pageRows;
    const rows = this.found.slice(first, first + this.pageRows);
    this.headers.forEach((header, i) => {
      const order = this.descending ? "descending" : "ascending";
      header.setAttribute("aria-sort", this.sort === i ? order : "none");
    });
    this.body.replaceChildren(...rows.map((row) => this.row(row)));
    this.count.value = this.counted(first, rows.length);
    this.before.disabled = this.page === 0;
    this.after.disabled = this.page === pages - 1;
    this.pager.hidden = pages === 1;
  }

  row(row) {
    const cells = this.columns.map((column) => {
      const classes = column.numeric ? "number" : column.words ? "words" : null;
      const properties = { role: "cell", class: classes, "data-label": column.title };
      return element("td", properties, shownIn(column, row));
    });
    return element("tr", { role: "row" }, ...cells);
  }

  counted(first, shown) {
    const all = this.found.length;
    const of = all === this.rows.length ? "" : `, of ${whole(this.rows.length)}`;
    const some = all <= this.pageRows ? "" : `${whole(first + 1)}–${whole(first + shown)} of `;
    return `${some}${counted(all, ...this.rowNames)}${of}`;
  }
}
