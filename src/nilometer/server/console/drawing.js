// Draws a tree of elements. Texts become text nodes and never markup, and an update changes only
// what differs, so nothing flickers and the focus stays where it is.
import { h } from "vue";

const draw = (node) =>
  typeof node === "string" ? node : h(node[0], node[1], node.slice(2).map(draw));

export default {
  props: { tree: Array, note: String },
  data: () => ({ said: null }),
  methods: {
    say(event) {
      const noted = event.target.closest("[data-note]");
      this.said = noted === null ? null : noted.dataset.note;
    },
    hush() {
      this.said = null;
    },
  },
  render() {
    const heard = {
      onMouseover: this.say,
      onFocusin: this.say,
      onMouseleave: this.hush,
      onFocusout: this.hush,
    };
    const note = () => h("p", { class: "nm-note", "aria-live": "polite" }, this.said ?? this.note);
    return h("div", heard, [draw(this.tree), ...(this.note ? [note()] : [])]);
  },
};
