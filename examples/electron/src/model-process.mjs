// @ts-check
/** The program of the `utilityProcess`: serves the model to the main process. */
import { serveModel } from './serve-model.mjs';

serveModel(
  /** @type {{ parentPort: import('./messages.d.ts').Port }} */ (/** @type {unknown} */ (process)).parentPort,
);
