/* Search from the file system.

A browser starts no worker from a `file:` address. There, the site's search runs in a hidden frame
instead, which has the part of a worker's interface that the search uses. On a server this file
does nothing. */
"use strict";
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.onmessage = null;
      this.onerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      this.ready = new Promise((resolve) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href);
        script.onload = resolve;
        script.onerror = (event) => this.onerror?.(event);
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow?.onmessage({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
