/** Shared options -> a runtime, fields of a request, and a model by id or name. */
import { allOf } from '../../common/index.ts';
import { OnpolicyError } from '../../errors.ts';
import {
  createRuntime,
  type HubOptions,
  type Model,
  type Runtime,
  type RuntimeOptions,
} from '../../index.ts';
import { flag, type Given, number, type OptionSpec, text, toOptions } from './arguments.ts';
import { modelProgress } from './model-progress.ts';
import { isWatched, type Terminal } from './terminal.ts';

const everywhere = <Kind extends OptionSpec>(option: Kind): Kind => ({ ...option, group: 'Everywhere:' });

/** Results as JSON. */
export const JSON_FLAG = { json: everywhere(flag('results and errors as JSON')) } as const;

/** Options of the hub: its address and token, and the folder of downloads. */
export const HUB_FLAGS = {
  'hub-token': everywhere(text('T', 'for gated and private repositories of hf: URIs')),
  'hub-folder': everywhere(text('FOLDER', 'where downloads are kept')),
  'hub-endpoint': everywhere(text('URL', 'a mirror of the hub')),
  offline: everywhere(flag('only what is downloaded')),
} as const;

/** Options of every command that opens a runtime. */
export const COMMON = {
  home: everywhere(text('FOLDER', 'registered models and their runs (default: .onpolicy)')),
  ...HUB_FLAGS,
  ...JSON_FLAG,
} as const;

/** Option that names a model. */
export const MODEL = text('M', "a path, an hf: URI, a registered model's id or name, name@step");
/** The projector of a model. */
export const MMPROJ = text('F', 'the projector of --model (default: that in its folder or repository)');

/** Flag -> option of `hub`. */
const OF_HUB = { 'hub-token': 'token', 'hub-folder': 'folder', 'hub-endpoint': 'endpoint' };

/** Options of commands that sample. */
export const SAMPLING = {
  model: MODEL,
  mmproj: MMPROJ,
  system: text('TEXT', 'the system message'),
  'max-tokens': number('maximum number of tokens of an answer'),
  temperature: number('0 takes the likeliest token each time'),
  'top-p': number('share of the likeliest tokens'),
  seed: number('the same seed gives the same answer'),
} as const;

/** The values of {@link SAMPLING}. */
type Sampling = Omit<Given<typeof SAMPLING>['options'], 'system' | 'mmproj'>;

/** Returns these values as fields of a request. */
export function toRequest(options: Sampling) {
  const fields = {
    model: options.model,
    max_completion_tokens: options['max-tokens'],
    temperature: options.temperature,
    top_p: options['top-p'],
    seed: options.seed,
  };
  return fields satisfies Record<string, string | number | undefined>;
}

/** The values of {@link HUB_FLAGS}. */
type HubFlags = Given<typeof HUB_FLAGS>['options'];

/** Returns the option `hub` that flags set. */
export function hubOf(options: HubFlags): HubOptions {
  return toOptions({ ...options, offline: options.offline || undefined }, ['offline'], OF_HUB);
}

/** Options of opening a runtime: the values of {@link COMMON}, and those that only some commands have. */
type Opening = HubFlags & {
  readonly home: string | undefined;
  readonly model?: string | undefined;
  readonly mmproj?: string | undefined;
  readonly onProgress?: RuntimeOptions['onProgress'];
  /** Further options. Those of the command line take precedence. */
  readonly runtime?: RuntimeOptions;
};

/** Opens the runtime of a command. A terminal shows downloads and loading; damaged files of the home folder are reported on the error stream. */
export function openRuntime(
  { home, model, mmproj, onProgress, runtime = {}, ...options }: Opening,
  terminal: Terminal,
): Promise<Runtime> {
  const hub = hubOf(options);
  return createRuntime({
    ...runtime,
    ...(Object.keys(hub).length === 0 ? {} : { hub: { ...runtime.hub, ...hub } }),
    home: home ?? runtime.home,
    onProgress:
      onProgress ?? runtime.onProgress ?? (isWatched(terminal.errors) ? modelProgress(terminal) : undefined),
    ...(mmproj === undefined ? {} : { models: withProjector(runtime.models, model, mmproj) }),
    onStoreProblem: (problem) => terminal.errors.write(`onpolicy: ${problem}\n`),
  });
}

function withProjector(models: RuntimeOptions['models'], path: string | undefined, mmproj: string) {
  if (path === undefined)
    throw new OnpolicyError('INVALID_REQUEST', '--mmproj: expected one --model beside it', {
      param: 'mmproj',
    });
  const known = models?.[path];
  return { ...models, [path]: { ...(typeof known === 'object' ? known : {}), path, mmproj } };
}

/** Finds a registered model by id or name. */
export async function findModel(runtime: Runtime, idOrName: string): Promise<Model> {
  try {
    return await runtime.models.retrieve(idOrName);
  } catch (error) {
    if (!(error instanceof OnpolicyError) || error.code !== 'MODEL_NOT_FOUND') throw error;
    for await (const model of allOf((after) => runtime.models.list({ after, limit: 100 })))
      if (model.name === idOrName) return model;
    throw error;
  }
}
