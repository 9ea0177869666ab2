/** Validation of training jobs and logs: any input -> a valid request, or one error that lists every fault. */
import type { ErrorDetail } from '../errors.ts';
import type { Checked, CheckedLogRequest } from './checked.ts';
import { fault, invalidRequest, throwFaults } from './faults.ts';
import type {
  History,
  LogRequest,
  SftRequest,
  TrainingJobRequest,
  Trajectory,
  TrajectoryGroup,
} from './generated/request-types.ts';
import { isJsonObject } from './json.ts';
import { freeFormFault } from './rules/free-form.ts';
import { jobSettingFaults } from './rules/training-settings.ts';
import { readingInput, schemaFaults, unknownFields, type ValidationOptions } from './validate.ts';

/** Checks the request for a training job. Throws `INVALID_REQUEST` with all faults. */
export function checkTrainingJobRequest(
  input: unknown,
  options: ValidationOptions = {},
): Checked<TrainingJobRequest> {
  const request = checkGroups('TrainingJobRequest', input, options) as Checked<TrainingJobRequest>;
  throwFaults(jobSettingFaults(['experimental_config'], request.experimental_config ?? {}));
  return request;
}

/** Checks the form of a request for supervised training. Throws `INVALID_REQUEST` with all faults. */
export function checkSftRequest(input: unknown): SftRequest {
  return readingInput(input, () => {
    const found = schemaFaults('SftRequest', input, 'ignore'); // a message may have fields for its template
    if (found.count > 0) throw invalidRequest(found);
    const { data } = input as { data: readonly object[] };
    throwFaults(data.flatMap((example, i) => freeFormFault(['data', String(i)], example) ?? []));
    return input as SftRequest;
  });
}

/** Checks a log request and fills in its split. Throws `INVALID_REQUEST` with all faults. */
export function checkLogRequest(input: unknown, options: ValidationOptions = {}): CheckedLogRequest {
  return withSplit(checkGroups('LogRequest', input, options) as LogRequest);
}

/** Fills in the split of a checked request. */
export function withSplit(request: LogRequest): CheckedLogRequest {
  return { ...(request as Checked<LogRequest>), split: request.split ?? 'val' };
}

function checkGroups(
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

/** Returns the faults of metrics. They are averaged, so only numbers, flags and null (no value) are valid. `reward` is a separate field. */
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

/** Returns the faults of a trajectory. Parts without a schema must be JSON data, because they are stored and rendered. */
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

/** Returns a choice without its token ids. They are most of its data, and the schema has checked all of them. */
function withoutIds(entry: unknown): unknown {
  return isJsonObject(entry) && entry['message'] !== undefined
    ? { ...entry, token_ids: null, prompt_token_ids: null, routed_experts: null }
    : entry;
}
