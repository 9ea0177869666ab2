/** Progress of rollouts -> a line in a terminal, drawn over itself. */
import { barOf, drawnLine } from '../../common/index.ts';
import { checkArguments } from '../../protocol/index.ts';
import type { GatherProgress } from './gather.ts';

/**
 * Draws the progress of `gatherTrajectoryGroups` as a bar. Writes nothing if the output is not a terminal.
 * @param label text before the bar
 */
export function progressBar(
  label = 'rollouts',
  output: NodeJS.WriteStream = process.stderr,
): (progress: GatherProgress) => void {
  checkArguments('ProgressArguments', { label, output });
  return ({ done, total, failed, reward }) => {
    if (!output.isTTY) return;
    const facts = [
      `${label} ${barOf(total === 0 ? 1 : done / total)} ${done}/${total}`,
      ...(reward === null ? [] : [`reward ${reward.toFixed(3)}`]),
      ...(failed === 0 ? [] : [`${failed} failed`]),
    ];
    output.write(drawnLine(facts, done === total));
  };
}
