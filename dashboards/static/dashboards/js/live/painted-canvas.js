// A canvas that is painted by a thread of its own (canvases/worker.js), so that the page's thread has no part in it: not in
// the strokes, and not in the animation frames that a motion takes.
import { onPaletteChange, readPalette } from "./palette.js";

const worker = new Worker(new URL("./canvases/worker.js", import.meta.url), { type: "module" });
let count = 0;

export class PaintedCanvas {
  #id = (count += 1);
  #palette = readPalette();
  #size = { width: 0, height: 0 };

  // kind: which painter, see canvases/worker.js; onChange(): it has another size or other colours.
  constructor(canvas, kind, onChange = () => {}) {
    const handed = canvas.transferControlToOffscreen();
    worker.postMessage({ id: this.#id, kind, canvas: handed, palette: this.#palette }, [handed]);
    new ResizeObserver(() => {
      if (!canvas.isConnected) {
        this.#tell({ isGone: true });
        return;
      }
      const { clientWidth: width, clientHeight: height } = canvas;
      this.#size = { width, height };
      this.#tell({ size: this.#size, scale: devicePixelRatio || 1 });
      onChange();
    }).observe(canvas);
    onPaletteChange(() => {
      this.#palette = readPalette();
      this.#tell({ palette: this.#palette });
      onChange();
    });
  }

  get palette() {
    return this.#palette;
  }

  // In CSS pixels.
  get size() {
    return this.#size;
  }

  // scene: what the painter is told; it is copied.
  show(scene) {
    this.#tell({ scene });
  }

  // What is out of sight is painted no more until it is shown again.
  rest() {
    this.#tell({ scene: null });
  }

  #tell(what) {
    worker.postMessage({ id: this.#id, ...what });
  }
}
