// The messages of a session, to unfold; each is written when it is opened.

const PAGE_MESSAGES = 100;
const PREVIEW_CHARS = 90;

// Groups the items of a session by the list and the message that they are in.
function messagesOf(items) {
  const messages = [];
  for (const item of items) {
    const last = messages[messages.length - 1];
    if (last && last.part === item.part && last.number === item.message) last.items.push(item);
    else messages.push({ part: item.part, number: item.message, items: [item] });
  }
  return messages;
}

// The beginning of the first thing that it says.
function preview(message) {
  const said = message.items.map((item) => item.text.trim()).find(Boolean) || "";
  const characters = [...said.slice(0, 2 * PREVIEW_CHARS)];
  const start = characters.slice(0, PREVIEW_CHARS).join("");
  return start.length < said.length ? `${start}…` : start;
}

class MessageList {
  constructor(items, decisions, calls) {
    this.messages = messagesOf(items);
    this.calls = calls.length;
    this.newLists = calls.filter((call) => call.anew).map((call) => call.anew);
    this.shown = [];
    this.query = "";
    this.reasons = new Map();
    this.kept = new Map();
    for (const one of decisions) {
      if (isKept(one)) this.kept.set(`${one.part} ${one.position}`, one);
      else this.reasons.set(`${one.part} ${one.position} ${one.call}`, one);
    }
    this.list = element("div", {});
    this.count = element("output", { "aria-live": "polite" });
    this.more = element(
      "button",
      { type: "button", onclick: () => this.add(true) },
      "Show more messages",
    );
    this.element = element("div", {}, this.finder(), this.list, this.more);
    this.find();
  }

  finder() {
    const input = element("input", {
      type: "search",
      autocomplete: "off",
      onchange: () => {
        this.query = input.value;
        this.find();
      },
    });
    const label = element("label", {}, "Search messages, then press Enter", input);
    return element("div", { class: "finder", role: "search" }, label, this.count);
  }

  find() {
    const wanted = this.query.toLowerCase();
    const holds = (item) =>
      [item.text, item.tool, item.item_type, item.item_id].join(" ").toLowerCase().includes(wanted);
    this.found = wanted
      ? this.messages.filter((message) => message.items.some(holds))
      : this.messages;
    this.drawn = 0;
    this.list.replaceChildren();
    const of = wanted ? `, of ${whole(this.messages.length)}` : "";
    this.count.value = `${counted(this.found.length, "message")}${of}`;
    this.add(false);
  }

  add(isAsked) {
    const next = this.found.slice(this.drawn, this.drawn + PAGE_MESSAGES);
    const made = [];
    for (const [i, message] of next.entries()) {
      const before = this.found[this.drawn + i - 1];
      if (message.part && (!before || before.part !== message.part)) {
        const what = NEW_LISTS[this.newLists[message.part - 1]];
        made.push(element("h3", {}, `List ${message.part + 1}: the recording ${what}`));
      }
      made.push(this.folded(message));
    }
    this.list.append(...made);
    this.drawn += next.length;
    this.more.hidden = this.drawn >= this.found.length;
    if (isAsked && made.length) made.find((one) => one.matches("details")).firstChild.focus();
  }

  folded(message) {
    const tokens = message.items.reduce((sum, item) => sum + (item.inside ? 0 : item.tokens), 0);
    const [first] = message.items;
    const kinds = [
      ...new Set(
        message.items.map((item) =>
          item.tool ? `${item.item_type} ${item.tool}` : item.item_type,
        ),
      ),
    ];
    const gone = message.items.filter((item) => item.absences.length);
    const summary = element(
      "summary",
      {},
      // From 0 on, as reasons and `policyctx explain` number them.
      `Message ${message.number}, ${first.role}: ${kinds.slice(0, 4).join(", ")}${kinds.length > 4 ? ", …" : ""}, ${counted(tokens, "token")}`,
      gone.length
        ? element("span", { class: "gone" }, `, out from call ${gone[0].absences[0].since} on`)
        : null,
      element("bdi", { class: "muted preview" }, preview(message)),
    );
    const details = element("details", { class: "message" }, summary);
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) {
        details.append(...message.items.map((item) => this.item(item)));
      }
    });
    message.details = details;
    return details;
  }

  item(item) {
    const what = [item.item_type, item.tool, item.item_id].filter(Boolean).join(" ");
    const since =
      item.arrived > this.calls ? "came after the last call" : `there from call ${item.arrived} on`;
    const facts = [counted(item.tokens, "token"), since];
    if (item.media)
      facts.push(`${counted(item.media, "image or document", "images or documents")} not shown`);
    if (item.error) facts.push("failed");
    const rest = item.chars - [...item.text].length;
    return element(
      "div",
      { class: item.inside ? "inside" : null },
      element("h3", {}, what),
      element("p", { class: "muted" }, facts.join(", ")),
      ...item.absences.flatMap((absence) => this.fate(item, absence)),
      this.stay(item),
      element("pre", { dir: "auto", tabindex: "0", "aria-label": `Text of ${what}` }, item.text),
      rest > 0
        ? element("p", { class: "muted" }, `${counted(rest, "more character")} not shown`)
        : null,
    );
  }

  fate(item, absence) {
    const why = this.reasons.get(`${item.part} ${item.position} ${absence.since}`);
    const until = absence.until
      ? `from call ${absence.since} to ${absence.until - 1}`
      : `from call ${absence.since} on`;
    const how = why ? `: ${why.action} by step ${why.step}, ${why.reason} (${placeOf(why)})` : "";
    const file = why && why.path ? `, saved in ${why.path}` : "";
    const told = [element("p", { class: "gone" }, `Out of the context ${until}${how}${file}`)];
    if (absence.left) {
      told.push(
        element("p", { class: "muted" }, "In its place:"),
        element("pre", { dir: "auto", tabindex: "0", "aria-label": "Placeholder" }, absence.left),
      );
    }
    return told;
  }

  // Why it was still there at the last call.
  stay(item) {
    const why = this.kept.get(`${item.part} ${item.position}`);
    if (!why) return null;
    const told = `Kept at call ${why.call}, by step ${why.step}: ${why.reason} (${placeOf(why)})`;
    return element("p", {}, told);
  }

  // Opens a message wherever it is in the list, and goes there.
  show(part, position) {
    const at = this.messages.findIndex(
      (message) =>
        message.part === part && message.items.some((item) => item.position === position),
    );
    if (at < 0) return;
    if (!this.found.includes(this.messages[at])) {
      this.query = this.element.querySelector("input").value = "";
      this.find();
    }
    while (this.drawn <= this.found.indexOf(this.messages[at])) this.add(false);
    const { details } = this.messages[at];
    details.open = true;
    details.scrollIntoView({ block: "start" });
    details.firstChild.focus({ preventScroll: true });
  }
}
