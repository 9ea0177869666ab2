/** A model's newest checkpoint and a caller's settings -> the adapter that its trainer is opened with. */
import type { ErrorDetail } from '../../errors.ts';
import { plainAlpha } from '../../models/lora/index.ts';
import { fault, type TrainingOptions, throwFaults, withDefaults } from '../../protocol/index.ts';
import { type AdapterShape, readAdapterShape, trainedModules } from '../index.ts';
import type { UsedCheckpoint } from '../store/index.ts';

/** Settings of an adapter that a caller may give. */
export type AdapterOptions = Pick<TrainingOptions, 'rank' | 'alpha' | 'rslora' | 'modules'>;

/** Settings that a caller asked for, and the path of each field in an error. */
export type AskedAdapter = {
  readonly options: AdapterOptions;
  readonly pathOf: (field: keyof AdapterOptions) => readonly string[];
};

/** Returns the settings of a runtime, as passed to `createRuntime`. */
export function askedOfRuntime(options: AdapterOptions): AskedAdapter {
  return { options, pathOf: (field) => ['training', field] };
}

/**
 * Returns the adapter of a model: that of its checkpoint, because training continues with the same shape, else a new one by the options and
 * defaults.
 * @param checkpoint folder of the checkpoint to continue from; null if there is none
 * @throws OnpolicyError `INVALID_REQUEST` if the caller asked for another rank, scale or other modules than the checkpoint has
 */
export async function adapterOf(
  file: string,
  checkpoint: { readonly step: number | string; readonly folder: string } | null,
  asked: AskedAdapter,
): Promise<AdapterShape> {
  const { options, pathOf } = asked;
  const { rank, alpha, rslora } = withDefaults('TrainingOptions', defined(options));
  if (!checkpoint) return { rank, alpha, rslora, modules: await trainedModules(file, options.modules) };
  const shape = withScale(await readAdapterShape(checkpoint.folder), { alpha, rslora });
  const faults: ErrorDetail[] = [];
  const whose = `of checkpoint ${checkpoint.step}, from which the model continues`;
  for (const field of ['rank', 'alpha', 'rslora'] as const) {
    const value = options[field];
    if (value !== undefined && value !== null && value !== shape[field])
      faults.push(
        fault(pathOf(field), 'conflict', `${shape[field]}, the ${field} ${whose}, or no value`, value),
      );
  }
  if (options.modules) {
    const wanted = new Set(await trainedModules(file, options.modules));
    const had = new Set(shape.modules);
    const missing = shape.modules.filter((name) => !wanted.has(name));
    const added = [...wanted].filter((name) => !had.has(name));
    if (missing.length + added.length > 0)
      faults.push(
        fault(
          pathOf('modules'),
          'conflict',
          `the ${had.size} modules ${whose}, or no value; ${listOf('it also has', missing)}${listOf('it lacks', added)}`,
          options.modules,
        ),
      );
  }
  throwFaults(faults);
  return shape;
}

/** Throws if a reference checkpoint cannot be loaded completely into the trainer of a job. */
export async function requireReference(
  { rank, alpha, rslora, modules }: AdapterShape,
  { step, folder }: UsedCheckpoint,
  field: 'kl_penalty_reference_step' | 'kl_penalty_step_lag',
): Promise<void> {
  if (folder === null) return; // the base model
  const other = withScale(await readAdapterShape(folder), { alpha, rslora });
  const known = new Set(modules);
  const unknown = other.modules.filter((name) => !known.has(name));
  const isScaled = Math.fround(plainAlpha(other)) === Math.fround(plainAlpha({ rank, alpha, rslora }));
  if (other.rank === rank && isScaled && unknown.length === 0) return;
  throwFaults([
    fault(
      ['experimental_config', field],
      'conflict',
      `a step whose adapter has the rank, scale and modules of the newest one; step ${step} has rank ${other.rank} and alpha ${other.alpha}, the newest ${rank} and ${alpha}${unknown.length > 0 ? `; ${listOf('it also has', unknown)}` : ''}`,
      step,
    ),
  ]);
}

/** Writes a scale that is known only as a product in the form of the settings, if both are equal. */
function withScale(shape: AdapterShape, given: Pick<AdapterShape, 'alpha' | 'rslora'>): AdapterShape {
  const same = Math.fround(plainAlpha({ rank: shape.rank, ...given })) === Math.fround(plainAlpha(shape));
  return same ? { ...shape, ...given } : shape;
}

function defined(options: AdapterOptions): AdapterOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined && value !== null),
  );
}

function listOf(what: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > 3 ? ` and ${names.length - 3} more` : '';
  return `${what} ${names.slice(0, 3).join(', ')}${more} `;
}
