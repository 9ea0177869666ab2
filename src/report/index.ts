/** A model's run -> a report page with curves, checkpoints and trajectories. */
import type { Store } from '../store/index.ts';
import { toHtml } from './html.ts';
import { readReport } from './report-data.ts';
import { readParts } from './report-parts.ts';

/**
 * The report of a model, named by id or name, as self-contained HTML: it works offline and stays below 5 MB, without the
 * oldest trajectories if necessary.
 * @throws OnpolicyError `MODEL_NOT_FOUND`
 */
export async function makeReport(store: Store, modelId: string): Promise<string> {
  const model = (await store.findModel(modelId)) ?? (await store.getModel(modelId));
  const data = await readReport(store, model.id);
  return await toHtml(data, await readParts(store, data.model.id));
}
