/** Flags of `onpolicy serve` about models -> options of a runtime. They take precedence over the configuration file. */
import type { RuntimeOptions } from '../../index.ts';
import { type Given, number, text, texts, toOptions, wrongUsage } from './arguments.ts';

export const SERVE_FLAGS = {
  alias: texts('NAME=MODEL', 'a name of a model; may be repeated'),
  adapter: texts('NAME=FILE', 'a name of an adapter on the one --model; may be repeated'),
  context: number('tokens of a prompt and its answer'),
  'kv-tokens': number('tokens that the cache holds'),
  'max-sequences': number('answers at once'),
  'max-waiting': number('requests that may wait'),
  'disk-cache': number('bytes of prompt caches on disk'),
  threads: number('of the processor'),
  gpu: text('G', 'auto, cuda, vulkan, metal or off'),
  'gpu-layers': text('N', 'layers on the GPU, or auto'),
  'cpu-expert-layers': text('N', 'layers whose experts stay on the CPU, or all'),
  'cache-type': text('T', 'f32, f16, q8_0 or q4_0'),
  'sliding-window': text('W', 'window: sliding-window layers cache only the window'),
  scheduling: text('P', 'fcfs or priority'),
} as const;

type Flags = Given<typeof SERVE_FLAGS>['options'];
type Named = NonNullable<RuntimeOptions['models']>;
type Model = Exclude<Named[string], string>;

/** Flags that are options of a runtime. */
const OF_RUNTIME = ['kv-tokens', 'max-sequences', 'max-waiting', 'threads', 'scheduling', 'gpu'];
const RENAMED = { context: 'contextSize', 'disk-cache': 'diskCacheBytes' };
/** Flags that are options of each model. */
const OF_MODEL = ['gpu-layers', 'cpu-expert-layers', 'cache-type', 'sliding-window'];
/** The model that ships with the package. */
const EMBEDDED = 'onpolicy-tiny';

/** Adds the flags to the options. `listed` are the models of `--model`. Values are checked when the runtime is created. */
export function withFlags(runtime: RuntimeOptions, flags: Flags, listed: readonly string[]): RuntimeOptions {
  const { gpu } = flags;
  const counts = {
    'gpu-layers': countOf(flags['gpu-layers']),
    'cpu-expert-layers': countOf(flags['cpu-expert-layers']),
  };
  const of = toOptions({ ...flags, ...counts }, OF_MODEL);
  const named: Record<string, Named[string]> = { ...runtime.models };
  const base = listed[0] ?? runtime.model ?? EMBEDDED;
  if (flags.adapter.length > 0 && listed.length > 1)
    throw wrongUsage('--adapter: expected at most one --model, the model that the adapters change');
  if (Object.keys(of).length > 0)
    for (const name of listed) named[name] = { ...toModel(named[name] ?? name), ...of };
  for (const [name, path] of pairs('alias', flags.alias)) named[name] = { path, ...of };
  for (const [name, file] of pairs('adapter', flags.adapter))
    named[name] = { ...toModel(base), ...of, adapters: [{ file }] };
  const isDefault = listed.length === 0 && Object.keys(of).length > 0;
  return {
    ...runtime,
    ...toOptions({ ...flags, gpu: gpu === 'off' ? false : gpu }, OF_RUNTIME, RENAMED),
    ...(isDefault ? { model: { ...toModel(base), ...of } } : {}),
    ...(Object.keys(named).length === 0 ? {} : { models: named }),
  };
}

/** Returns the number that a text is, or the text itself. */
function countOf(text: string | undefined): string | number | undefined {
  return text === undefined || Number.isNaN(Number(text)) ? text : Number(text);
}

function toModel(model: string | Model): Model {
  return typeof model === 'string' ? { path: model } : model;
}

/** Returns the names and values of a repeatable flag with values `NAME=VALUE`. */
function pairs(flag: string, values: readonly string[]): [string, string][] {
  return values.map((value) => {
    const at = value.indexOf('=');
    if (at < 1 || at === value.length - 1)
      throw wrongUsage(
        `--${flag}: expected NAME=${flag === 'alias' ? 'MODEL' : 'FILE'}, got ${JSON.stringify(value)}`,
      );
    return [value.slice(0, at), value.slice(at + 1)];
  });
}
