/** Logged trajectories -> compressed parts, newest first, as many as fit. The page decompresses one at a time. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { computeAdvantages, isChoice, type TrajectoryChoice, type TrajectoryMessage } from '../index.ts';
import type { LoggedException, LoggedTrajectory, Store, TrajectoryFile } from '../store/index.ts';

const compress = promisify(gzip);

/** Highest number of characters of all trajectories in the page. */
const BUDGET = 4_200_000;
/** Highest number of bytes of the log to read. Older ones are skipped. */
const READ_BYTES = 96 * 2 ** 20;
/** Characters of a part before compression. */
const PART_LENGTH = 400_000;
const LONGEST_TEXT = 6_000;
const MOST_TOKENS = 1_500;

/** A piece of a conversation: text, or sampled tokens with their log-probabilities in thousandths. */
export type ShownEntry = {
  readonly role: string;
  readonly text?: string;
  readonly tokens?: readonly string[];
  readonly logprobs?: readonly (number | null)[]; // (tokens)
};

/** A trajectory as the page shows it. */
export type ShownTrajectory = {
  readonly reward: number;
  readonly advantage: number;
  readonly metrics: Readonly<Record<string, unknown>>;
  /** Names of its tools. */
  readonly tools: readonly string[];
  /** The step that sampled it. Null if it does not state the step. */
  readonly version: number | null;
  readonly entries: readonly ShownEntry[];
  /** Its further conversations. */
  readonly more: readonly (readonly ShownEntry[])[];
};

/** Attempts of a group in a part, and the errors of failed ones. */
export type ShownAttempts = {
  readonly trajectories: readonly ShownTrajectory[];
  readonly failures: readonly { readonly type: string; readonly message: string }[];
};

/** Summary of a group, available before unpacking. */
export type ShownGroup = {
  readonly group: number;
  readonly step: number;
  readonly rewards: readonly number[];
  /** Attempts that failed. */
  readonly failures: number;
  /** Index of its part, and index of the group in the part. */
  readonly part: number;
  readonly place: number;
};

export type ShownSplit = {
  readonly split: string;
  readonly trajectories: number;
  /** Oldest first. */
  readonly groups: readonly ShownGroup[];
};

/** The splits of a run, and the parts with their trajectories: base64 of gzip of JSON, each a list of groups. */
export type Parts = { readonly splits: readonly ShownSplit[]; readonly parts: readonly string[] };

export async function readParts(store: Store, modelId: string): Promise<Parts> {
  const { splits } = await store.runs.readCommitted(modelId);
  const names = Object.keys(splits).sort();
  const shown: ShownSplit[] = [];
  const parts: string[] = [];
  for (const split of names) {
    const share = BUDGET / names.length;
    const files = splits[split]!;
    const found = await readSplit(store, modelId, split, firstGroup(files, READ_BYTES / names.length));
    const kept = newestThatFit(found, share);
    const groups = kept.flatMap(({ groups: inPart }, i) =>
      inPart.map((group, place) => ({ ...group, part: parts.length + i, place })),
    );
    parts.push(...kept.map(({ text }) => text));
    shown.push({ split, trajectories: files.reduce((sum, file) => sum + file.trajectories, 0), groups });
  }
  return { splits: shown, parts };
}

function newestThatFit(parts: readonly Part[], length: number): Part[] {
  let rest = length;
  const first = parts.findLastIndex(({ text }) => {
    rest -= text.length;
    return rest < 0;
  });
  return parts.slice(first + 1);
}

type Part = { readonly text: string; readonly groups: readonly Omit<ShownGroup, 'part' | 'place'>[] };

async function readSplit(store: Store, modelId: string, split: string, from: number): Promise<Part[]> {
  const parts: Part[] = [];
  let groups: Omit<ShownGroup, 'part' | 'place'>[] = [];
  let contents: string[] = [];
  let length = 0;
  const close = async () => {
    if (groups.length === 0) return;
    const packed = await compress(`[${contents.join(',')}]`, { level: 9 });
    parts.push({ text: packed.toString('base64'), groups });
    groups = [];
    contents = [];
    length = 0;
  };
  for await (const group of byGroup(store.runs.readAttempts(modelId, split, from))) {
    const trajectories = group.flatMap((line) => ('trajectory' in line ? [line.trajectory] : []));
    const failures = group.flatMap((line) => ('exception' in line ? [line.exception] : []));
    const rewards = trajectories.map(({ reward }) => reward);
    const advantages = advantagesOf(rewards);
    const content = JSON.stringify({
      trajectories: trajectories.map((trajectory, i) => toShown(trajectory, advantages[i]!)),
      failures: failures.map(({ type, message }) => ({ type, message: clip(message) })),
    } satisfies ShownAttempts);
    groups.push({ group: group[0]!.group, step: group[0]!.step, rewards, failures: failures.length });
    contents.push(content);
    length += content.length;
    if (length >= PART_LENGTH) await close();
  }
  await close();
  return parts;
}

/** Returns the first group of the newest files with at most `bytes` in total. */
function firstGroup(files: readonly TrajectoryFile[], bytes: number): number {
  let rest = files.reduce((sum, file) => sum + file.bytes, 0);
  let group = 0;
  for (const file of files.slice(0, -1)) {
    if (rest <= bytes) break;
    rest -= file.bytes;
    group += file.groups;
  }
  return group;
}

type Attempt = LoggedTrajectory | LoggedException;

async function* byGroup(lines: AsyncIterable<Attempt>): AsyncGenerator<Attempt[]> {
  let group: Attempt[] = [];
  for await (const line of lines) {
    if (group.length > 0 && group[0]!.group !== line.group) {
      yield group;
      group = [];
    }
    group.push(line);
  }
  if (group.length > 0) yield group;
}

/** Returns advantages with training's default scaling, without normalization over the batch. */
function advantagesOf(rewards: readonly number[]): number[] {
  const advantages = rewards.map(() => 0);
  const scored = rewards.map((reward) => ({ reward, trainable_tokens: 1 }));
  for (const { index, advantage } of computeAdvantages([scored], { normalize: false }))
    advantages[index] = advantage;
  return advantages;
}

function toShown(trajectory: LoggedTrajectory['trajectory'], advantage: number): ShownTrajectory {
  const { messages_and_choices, additional_histories, tools, initial_policy_version } = trajectory;
  return {
    reward: trajectory.reward,
    advantage: Number(advantage.toFixed(3)),
    metrics: { ...trajectory.auto_metrics, ...trajectory.metrics },
    tools: (tools ?? []).map((tool) => ('custom' in tool ? tool.custom.name : tool.function.name)),
    version: initial_policy_version ?? null,
    entries: toEntries(messages_and_choices),
    more: (additional_histories ?? []).map((history) => toEntries(history.messages_and_choices)),
  };
}

function toEntries(entries: LoggedTrajectory['trajectory']['messages_and_choices']): ShownEntry[] {
  return entries.map((entry) =>
    isChoice(entry) ? toChoice(entry) : { role: entry.role, text: clip(toText(entry)) },
  );
}

function toChoice({ message, logprobs }: TrajectoryChoice): ShownEntry {
  const content = logprobs?.content;
  if (!content?.length) return { role: message.role, text: clip(toText(message)) };
  const first = content.slice(0, MOST_TOKENS);
  return {
    role: message.role,
    tokens: [...first.map(({ token }) => token ?? ''), ...(content.length > MOST_TOKENS ? ['…'] : [])],
    logprobs: first.map(({ logprob }) =>
      typeof logprob === 'number' && Number.isFinite(logprob) ? Math.round(logprob * 1000) : null,
    ),
  };
}

function toText(message: TrajectoryMessage): string {
  const { content, tool_calls, function_call } = message as Record<string, unknown>;
  const parts = Array.isArray(content) ? (content as { text?: unknown }[]) : [{ text: content ?? '' }];
  const texts = parts.map((part) => (typeof part.text === 'string' ? part.text : JSON.stringify(part)));
  const calls = Array.isArray(tool_calls) && tool_calls.length > 0 ? tool_calls : function_call;
  return [...texts, ...(calls ? [JSON.stringify(calls, null, 1)] : [])].join('\n');
}

function clip(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)} … (${text.length} letters)`;
}
