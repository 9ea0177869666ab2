/** The models of a repository -> the largest that fits, with its cache and projector. */
import { OnpolicyError } from '../errors.ts';
import { roomFor } from './fit.ts';
import { type Candidate, type FindOptions, uriOf } from './hub/index.ts';
import { planLoad } from './load-model.ts';
import { totalBytes } from './memory-need.ts';
import type { FormatOptions } from './model-format.ts';
import { openRemoteModel } from './remote-model.ts';

/**
 * Returns a function that chooses the largest model that fits. It reads the headers of the smallest one only, because the memory that a
 * model needs beside its weights is the same for all weight types.
 */
export function chooseFitting(serving: FormatOptions): FindOptions['choose'] {
  return async (reference, files, candidates, signal) => {
    const smallest = candidates.at(-1)!;
    await using remote = await openRemoteModel({ reference, model: smallest, files }, serving.hub, signal);
    const { need } = await planLoad(remote.file, { path: remote.file }, serving, signal);
    const beside = Math.max(0, totalBytes(need) - (smallest.bytes ?? need.weights));
    const needOf = ({ bytes }: Candidate): number => (bytes ?? need.weights) + beside;
    const room = roomFor(serving.gpu);
    const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
    const fitting = candidates.find((one) => needOf(one) <= room);
    if (!fitting)
      throw new OnpolicyError(
        'OUT_OF_MEMORY',
        `the smallest model of ${reference.repository} takes ${gib(needOf(smallest))}, and ${gib(room)} are free with some room left. A smaller kvTokens, contextSize or maxSequences takes less`,
      );
    const chosen = uriOf(reference, fitting.files[0]!.path);
    serving.notice(
      `${chosen}: the largest of ${candidates.length} that fits: ${gib(needOf(fitting))} of ${gib(room)}`,
    );
    return fitting;
  };
}
