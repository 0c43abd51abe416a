/* Search without a server: browsers start no workers for pages that are files, so a worker is a
   hidden frame there, which runs the same script. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const address = new URL(url, document.baseURI).href;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((done) => {
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow;
          const load = (source) =>
            new Promise((loaded, failed) => {
              const script = inside.document.createElement("script");
              script.onload = loaded;
              script.onerror = failed;
              script.src = new URL(source, address).href;
              inside.document.body.append(script);
            });
          inside.importScripts = (...sources) => Promise.all(sources.map(load));
          inside.postMessage = (data) => this.tell(data);
          load(address).then(() => done(inside));
        }, { once: true });
      });
      document.documentElement.append(frame);
      this.frame = frame;
    }
    tell(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
