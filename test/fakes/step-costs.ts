/** Tests that count drafts -> engines that measure no step: those of any size are thought to take as long, whatever a busy machine does. */
import { afterAll, beforeAll, vi } from 'vitest';
import { StepCosts } from '../../src/engine/step-costs.ts';

/** For the tests of the calling file. */
export function measureNoSteps(): void {
  beforeAll(() => {
    vi.spyOn(StepCosts.prototype, 'record').mockImplementation(() => {});
  });
  afterAll(() => {
    vi.restoreAllMocks();
  });
}
