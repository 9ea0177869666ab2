/** `onpolicy batch`: a file of requests -> a file of answers, with progress on the error stream. */
import { barOf, drawnLine } from '../../common/index.ts';
import {
  type BatchProgress,
  type BatchSummary,
  connect,
  type Service,
  type TypedBatchOptions,
} from '../../index.ts';
import { METHODS } from '../../protocol/service/index.ts';
import { command, flag, type Given, number, text, toOptions } from './arguments.ts';
import { CONFIG, readConfig } from './config-file.ts';
import { COMMON, MMPROJ, MODEL, openRuntime } from './model-arguments.ts';
import { SERVE_FLAGS, withFlags } from './serve-flags.ts';
import { isWatched, print, printJson, type Terminal, untilInterrupted } from './terminal.ts';

const FLAGS = {
  ...COMMON,
  ...SERVE_FLAGS,
  config: CONFIG,
  model: MODEL,
  mmproj: MMPROJ,
  endpoint: text('PATH', `of rows without one, such as ${METHODS.createCompletion.http[1]}`),
  errors: text('FILE', 'rows that failed'),
  order: text('ORDER', 'input or any'),
  seed: number('the seed of rows without one'),
  concurrency: number('rows at once'),
  retries: number('further tries of a row'),
  'max-failures': number('failed rows until the run ends'),
  'row-timeout': number('milliseconds for a row'),
  resume: flag('continues an earlier run'),
  url: text('U', 'a server that answers instead of this process'),
  token: text('T', 'its token'),
} as const;

/** Most ids of cut answers that are shown. */
const SHOWN_IDS = 5;

/** Flags that are options of `batch`. */
const OPTIONS = ['errors', 'order', 'seed', 'concurrency', 'retries', 'max-failures', 'resume', 'model'];
const RENAMED = { endpoint: 'url', 'row-timeout': 'timeoutMs' };

/** Answers the rows of a file. Ctrl+C ends it, and `--resume` continues it. */
export const batch = command({
  name: 'batch',
  words: '<input> <output>',
  about: 'answers the requests in a file, into another file; - is the input. More in docs/batch.md',
  options: FLAGS,
  async run({ options, names }, terminal) {
    const [input, output] = names as [string, string];
    await using service = await openService(options, terminal);
    const work = async (signal: AbortSignal): Promise<void> => {
      const given = { ...toOptions(options, OPTIONS, RENAMED), output, signal } as TypedBatchOptions<unknown>;
      const onProgress = progressOn(terminal, options.json);
      const started = service.batch(input === '-' ? terminal.input : input, { ...given, onProgress });
      const summary = await started.done;
      if (options.json) printJson(terminal, summary);
      else print(terminal, inWords(summary));
    };
    await untilInterrupted(work, 'interrupted; the same command with --resume continues');
  },
});

/** Opens a client of a server, or a runtime in this process. */
async function openService(options: Given<typeof FLAGS>['options'], terminal: Terminal): Promise<Service> {
  const { url, token, model } = options;
  if (url !== undefined) return connect({ baseUrl: url, ...(token === undefined ? {} : { apiKey: token }) });
  const { runtime } = await readConfig(options.config);
  const flagged = withFlags(runtime, options, model === undefined ? [] : [model]);
  return await openRuntime({ ...options, runtime: flagged }, terminal);
}

/** Draws a bar, or writes a line of JSON each time. */
function progressOn({ errors }: Terminal, isJson: boolean): (progress: BatchProgress) => void {
  if (isJson) return (progress) => errors.write(`${JSON.stringify({ progress })}\n`);
  if (!isWatched(errors)) return () => {};
  return (progress) => {
    const { rows, failed, running, tokensPerSecond, cachedShare, fraction, secondsLeft } = progress;
    const facts = [
      ...(fraction === null ? [] : [barOf(fraction)]),
      `${rows} rows`,
      ...(failed === 0 ? [] : [`${failed} failed`]),
      `${tokensPerSecond.toFixed(0)} tokens/s`,
      ...(cachedShare === null ? [] : [`${(100 * cachedShare).toFixed(0)} % of prompts cached`]),
      ...(secondsLeft === null ? [] : [`${durationOf(secondsLeft)} left`]),
    ];
    errors.write(drawnLine(facts, running === 0 && fraction === 1));
  };
}

function inWords({
  rows,
  completed,
  failed,
  cut,
  cutIds,
  resumed,
  shared,
  seconds,
  ...tokens
}: BatchSummary): string {
  const { promptTokens, cachedTokens, completionTokens } = tokens;
  return [
    `${completed} of ${rows} rows answered${failed === 0 ? '' : `, ${failed} failed`} in ${durationOf(seconds)}`,
    ...(cut === 0
      ? []
      : [
          `${cut} cut by their token limit${cutIds.length === 0 ? '' : `: ${cutIds.slice(0, SHOWN_IDS).join(', ')}${cut > SHOWN_IDS ? ', ...' : ''}`}`,
        ]),
    ...(resumed === 0 ? [] : [`${resumed} by earlier runs`]),
    ...(shared === 0 ? [] : [`${shared} like an identical row`]),
    `${promptTokens} tokens of prompts, ${cachedTokens} of them cached, ${completionTokens} of answers`,
  ].join('; ');
}

function durationOf(seconds: number): string {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${seconds.toFixed(1)} s`;
}
