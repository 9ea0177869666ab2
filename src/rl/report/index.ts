/** A model's run -> a report page with curves, checkpoints and trajectories. */
import { checkArguments, type ReportOptions } from '../../protocol/index.ts';
import type { Store } from '../store/index.ts';
import { toHtml } from './html.ts';
import { readReport } from './report-data.ts';
import { readParts } from './report-parts.ts';

/**
 * The report of a model, named by id or name, as self-contained HTML: it works offline and stays below 5 MB, without the
 * oldest trajectories if necessary.
 * @throws OnpolicyError `MODEL_NOT_FOUND`
 */
export async function makeReport(
  store: Store,
  modelId: string,
  options: ReportOptions = {},
): Promise<string> {
  const { compare } = checkArguments('ReportOptions', options);
  const find = async (name: string) => (await store.findModel(name)) ?? (await store.getModel(name));
  const model = await find(modelId);
  const other = compare ? await find(compare) : null;
  const data = await readReport(store, model.id, other?.id ?? null);
  return await toHtml(data, await readParts(store, data.model.id));
}
