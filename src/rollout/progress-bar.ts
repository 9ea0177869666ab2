/** Progress of rollouts -> a line in a terminal, drawn over itself. */
import { checkArguments } from '../protocol/index.ts';
import type { GatherProgress } from './gather.ts';

const WIDTH = 30;

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
    const filled = total === 0 ? WIDTH : Math.floor((done / total) * WIDTH);
    const bar = '█'.repeat(filled) + '░'.repeat(WIDTH - filled);
    const facts = [
      `${label} ${bar} ${done}/${total}`,
      ...(reward === null ? [] : [`reward ${reward.toFixed(3)}`]),
      ...(failed === 0 ? [] : [`${failed} failed`]),
    ];
    output.write(`\r\x1b[2K${facts.join('  ')}${done === total ? '\n' : ''}`);
  };
}
