/** Validation of training jobs and logs: any input -> a valid request, or one error that lists every fault. */
import type { ErrorDetail } from '../errors.ts';
import type { Checked, CheckedLogRequest } from './checked.ts';
import { fault, invalidRequest, throwFaults } from './faults.ts';
import type {
  History,
  LogRequest,
  TrainingJobRequest,
  Trajectory,
  TrajectoryGroup,
} from './generated/request-types.ts';
import { isJsonObject } from './json.ts';
import { freeFormFault } from './rules/free-form.ts';
import { jobSettingFaults } from './rules/training-settings.ts';
import { readingInput, schemaFaults, unknownFields, type ValidationOptions } from './validate.ts';

/** Checks the request for a training job. Throws `INVALID_REQUEST` with all faults. */
export function validateTrainingJobRequest(
  input: unknown,
  options: ValidationOptions = {},
): Checked<TrainingJobRequest> {
  const request = validateGroups('TrainingJobRequest', input, options) as Checked<TrainingJobRequest>;
  throwFaults(jobSettingFaults(['experimental_config'], request.experimental_config ?? {}));
  return request;
}

/** Checks the form of a request for supervised training. Throws `INVALID_REQUEST` with all faults. */
export function checkSftRequest(input: unknown): void {
  readingInput(input, () => {
    const found = schemaFaults('SftRequest', input, 'ignore'); // a message may have fields for its template
    if (found.count > 0) throw invalidRequest(found);
    const { data } = input as { data: readonly object[] };
    throwFaults(data.flatMap((example, i) => freeFormFault(['data', String(i)], example) ?? []));
  });
}

/** Checks a log request and fills in its split. Throws `INVALID_REQUEST` with all faults. */
export function validateLogRequest(input: unknown, options: ValidationOptions = {}): CheckedLogRequest {
  const request = validateGroups('LogRequest', input, options) as Checked<LogRequest>;
  return { ...request, split: request.split ?? 'val' };
}

function validateGroups(
  name: 'TrainingJobRequest' | 'LogRequest',
  input: unknown,
  options: ValidationOptions,
): unknown {
  return readingInput(input, () => {
    const found = schemaFaults(name, input, unknownFields(options), options.onDropped);
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

/** Metrics are averaged: numbers and flags; null stands for none. The reward has a field of its own. */
function metricFaults(loc: readonly string[], metrics: object): ErrorDetail[] {
  const faults: ErrorDetail[] = [];
  for (const [name, value] of Object.entries(metrics)) {
    const at = [...loc, name];
    if (REWARDS.has(name))
      faults.push(fault(at, 'value', 'no such name: it is computed from `reward`', value));
    else if (!['number', 'boolean', 'undefined'].includes(typeof value) && value !== null)
      faults.push(fault(at, 'type', 'a number, true, false or null; `metadata` takes all else', value));
  }
  return faults;
}

/** Names of metrics that are computed from the field `reward`. */
const REWARDS = new Set(['reward', 'reward_std_dev']);

/** Parts of a trajectory that have no schema of their own must be JSON data: they are stored and rendered. */
function trajectoryFaults(trajectory: Trajectory, loc: readonly string[]): ErrorDetail[] {
  const faults: ErrorDetail[] = [];
  const read = (value: unknown, ...path: string[]): void => {
    const found = freeFormFault([...loc, ...path], value);
    if (found) faults.push(found);
  };
  const readHistory = ({ tools, messages_and_choices }: History, ...path: string[]): void => {
    read(tools, ...path, 'tools');
    for (const [i, entry] of messages_and_choices.entries())
      read(withoutIds(entry), ...path, 'messages_and_choices', String(i));
  };
  for (const field of ['metrics', 'auto_metrics', 'metadata', 'logs'] as const)
    read(trajectory[field], field);
  for (const field of ['metrics', 'auto_metrics'] as const)
    if (faults.length === 0) faults.push(...metricFaults([...loc, field], trajectory[field] ?? {}));
  readHistory(trajectory);
  trajectory.additional_histories?.forEach((history, h) => {
    readHistory(history, 'additional_histories', String(h));
  });
  return faults;
}

/** A choice without its ids, most of what it holds: the schema says all of them. */
function withoutIds(entry: unknown): unknown {
  return isJsonObject(entry) && entry['message'] !== undefined
    ? { ...entry, token_ids: null, prompt_token_ids: null, routed_experts: null }
    : entry;
}
