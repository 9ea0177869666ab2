/** The doors for training jobs and logs: any input -> a valid request, or one error that lists every fault. */
import type { ErrorDetail } from '../errors.ts';
import type { Checked, CheckedLogRequest } from './checked.ts';
import { invalidRequest, throwFaults } from './faults.ts';
import type {
  LogRequest,
  TrainingJobRequest,
  Trajectory,
  TrajectoryGroup,
} from './generated/request-types.ts';
import { freeFormFault } from './rules/free-form.ts';
import { atTheDoor, type DoorOptions, schemaFaults, unknownFields } from './validate.ts';

/** Checks the request for a training job. Throws `INVALID_REQUEST` with all faults. */
export function validateTrainingJobRequest(
  input: unknown,
  options: DoorOptions = {},
): Checked<TrainingJobRequest> {
  return validateGroups('TrainingJobRequest', input, options) as Checked<TrainingJobRequest>;
}

/** Checks a log request and fills in its split. Throws `INVALID_REQUEST` with all faults. */
export function validateLogRequest(input: unknown, options: DoorOptions = {}): CheckedLogRequest {
  const request = validateGroups('LogRequest', input, options) as Checked<LogRequest>;
  return { ...request, split: request.split ?? 'val' };
}

function validateGroups(
  name: 'TrainingJobRequest' | 'LogRequest',
  input: unknown,
  options: DoorOptions,
): unknown {
  return atTheDoor(() => {
    const found = schemaFaults(name, input, unknownFields(options));
    if (found.count > 0) throw invalidRequest(found);
    throwFaults(freeFormFaults((input as LogRequest).trajectory_groups));
    return input;
  });
}

function freeFormFaults(groups: readonly TrajectoryGroup[]): ErrorDetail[] {
  return groups.flatMap(({ trajectories }, g) =>
    trajectories.flatMap((trajectory, t) =>
      trajectoryFaults(trajectory, ['trajectory_groups', String(g), 'trajectories', String(t)]),
    ),
  );
}

/** Parts of a trajectory that have no schema of their own must be JSON data: they are stored and rendered. */
function trajectoryFaults(trajectory: Trajectory, loc: readonly string[]): ErrorDetail[] {
  const faults: ErrorDetail[] = [];
  for (const field of [
    'tools',
    'metrics',
    'auto_metrics',
    'metadata',
    'logs',
    'additional_histories',
  ] as const) {
    const found = freeFormFault([...loc, field], trajectory[field]);
    if (found) faults.push(found);
  }
  trajectory.messages_and_choices.forEach((entry, i) => {
    const found = freeFormFault([...loc, 'messages_and_choices', String(i)], entry);
    if (found) faults.push(found);
  });
  return faults;
}
