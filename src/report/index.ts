/** A model's run as a page: curves, checkpoints and trajectories in one file. */
import type { Store } from '../store/index.ts';
import { toHtml } from './html.ts';
import { readReport } from './report-data.ts';
import { readParts } from './report-parts.ts';

/**
 * The report of a run, of a model's id or name, as HTML that needs nothing else: it works offline, and stays below 5 MB by
 * leaving the oldest trajectories out.
 * @throws OnpolicyError `MODEL_NOT_FOUND`
 */
export async function makeReport(store: Store, modelId: string): Promise<string> {
  const model = (await store.findModel(modelId)) ?? (await store.getModel(modelId));
  const data = await readReport(store, model.id);
  return await toHtml(data, await readParts(store, data.model.id));
}
