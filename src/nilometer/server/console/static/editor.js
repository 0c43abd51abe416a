// What the editor has beyond NiceGUI's: colours and words of our SQL, names to complete, a mark
// where an error is.
import * as CM from "nicegui-codemirror";

// Comments, texts, quoted names, numbers, words; what is none of these has no colour.
const TOKENS = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|`[^`]*(?:`|$)|\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b|\b[A-Za-z_]\w*/g;

// The same classes as the statements on other pages have.
const kindOf = (text, keywords) => {
  if (text.startsWith("--") || text.startsWith("/*")) return "comment";
  if (text.startsWith("'")) return "string";
  if (text.startsWith("`")) return null;
  if (/^\d/.test(text)) return "number";
  return keywords.has(text.toUpperCase()) ? "keyword" : null;
};

const coloured = (state, keywords) => {
  const text = state.doc.toString();
  const marks = [];
  for (const token of text.matchAll(TOKENS)) {
    const kind = kindOf(token[0], keywords);
    if (kind) marks.push(CM.Decoration.mark({ class: kind }).range(token.index, token.index + token[0].length));
  }
  return CM.Decoration.set(marks);
};

const colours = (keywords) =>
  CM.StateField.define({
    create: (state) => coloured(state, keywords),
    update: (shown, change) => (change.docChanged ? coloured(change.state, keywords) : shown),
    provide: (field) => CM.EditorView.decorations.from(field),
  });

const setMark = CM.StateEffect.define();
const marks = CM.StateField.define({
  create: () => CM.Decoration.none,
  update(shown, change) {
    shown = shown.map(change.changes);
    for (const effect of change.effects) if (effect.is(setMark)) shown = effect.value;
    return shown;
  },
  provide: (field) => CM.EditorView.decorations.from(field),
});

export async function install(id, options) {
  const component = getElement(id);
  const view = component.editor ?? (await component.editorPromise);
  const isKnown = Boolean(view.nilometer); // a page that was cut off and has come back
  view.nilometer = options;
  if (isKnown) return;
  const names = [{ autocomplete: (context) => complete(view, context) }]; // known by its identity
  view.dispatch({
    effects: CM.StateEffect.appendConfig.of([
      marks,
      colours(new Set(options.keywords)),
      CM.EditorState.languageData.of(() => names),
      CM.EditorView.contentAttributes.of({ "aria-label": options.label, "aria-describedby": options.help }),
    ]),
  });
  const follow = () => component.setTheme(document.body.classList.contains("body--dark") ? "githubDark" : "githubLight");
  follow();
  const watcher = new MutationObserver(follow);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["class"] });
}

export function know(id, relations) {
  const view = getElement(id)?.editor;
  if (view?.nilometer) view.nilometer.relations = relations;
}

// Only if the text is still the one that was checked: what was typed meanwhile is not judged.
export function mark(id, text, start, end, message) {
  const view = getElement(id)?.editor;
  if (!view || view.state.doc.toString() !== text) return;
  const units = (count) => Array.from(text).slice(0, count).join("").length;
  let [from, to] = [units(start), units(end)];
  if (to <= from) [from, to] = from > 0 ? [from - 1, from] : [0, Math.min(1, text.length)];
  const wrong = CM.Decoration.mark({ class: "nm-wrong", attributes: { title: message } });
  view.dispatch({ effects: setMark.of(to > from ? CM.Decoration.set([wrong.range(from, to)]) : CM.Decoration.none) });
}

export function unmark(id) {
  const view = getElement(id)?.editor;
  if (view?.nilometer) view.dispatch({ effects: setMark.of(CM.Decoration.none) });
}

export function focus(id) {
  const view = getElement(id)?.editor;
  view?.focus();
}

// After a dot: columns of what stands before it, an alias or a name. Else: names, functions, words.
function complete(view, context) {
  const { relations, functions, words } = view.nilometer;
  const text = context.state.doc.toString();
  const dotted = context.matchBefore(/[\w`]+\.\w*/);
  if (dotted) {
    const owner = dotted.text.split(".")[0].replaceAll("`", "");
    const columns = columnsOf(relations, meaning(relations, text, owner) ?? owner);
    if (!columns.length) return null;
    return offered(dotted.from + owner.length + 1, columns, dotted.text.split(".")[1]);
  }
  const word = context.matchBefore(/\w+/);
  if (!word && !context.explicit) return null;
  const used = Object.keys(relations).filter((name) => new RegExp(`\\b${plain(name)}\\b`, "i").test(text));
  const options = [
    ...Object.keys(relations).map((name) => ({ label: name, type: "class", detail: "stream or table", boost: 3 })),
    ...used.flatMap((name) => columnsOf(relations, name)),
    ...functions.map((name) => ({ label: name, type: "function", apply: `${name}(` })),
    ...words.map((name) => ({ label: name, type: "keyword", boost: 1 })),
  ];
  return offered(word ? word.from : context.pos, options, word ? word.text : "");
}

// A word that is whole needs no list below it, unless it begins longer ones.
function offered(from, options, typed) {
  const isWhole = (text) => {
    const begun = options.filter(({ label }) => label.toLowerCase().startsWith(text.toLowerCase()));
    return begun.length > 0 && begun.every(({ label }) => label.length === text.length);
  };
  if (isWhole(typed)) return null;
  return { from, options, validFor: (text) => /^\w*$/.test(text) && !isWhole(text) };
}

function columnsOf(relations, name) {
  const known = Object.keys(relations).find((one) => one.toLowerCase() === name.toLowerCase());
  return (relations[known] ?? []).map(([label, type]) => ({ label, type: "property", detail: type, boost: 4 }));
}

function meaning(relations, text, alias) {
  for (const name of Object.keys(relations)) {
    const said = new RegExp(`\\b${plain(name)}\\b\\s*(?:\\[[^\\]]*\\]\\s*)?(?:AS\\s+)?${alias}\\b`, "i");
    if (said.test(text)) return name;
  }
  return null;
}

// Names may have characters that mean something in patterns.
function plain(name) {
  return name.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
