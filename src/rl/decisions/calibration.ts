/** Logits of options and what is right -> how good their probabilities are, and the temperature that makes them best. */
import { logSumExp, probabilitiesOf } from '../../answer/index.ts';
import type { DecisionKind } from '../../protocol/index.ts';

/** A question with a known answer, as a model answers it. */
export type ScoredQuestion = {
  readonly kind: DecisionKind;
  /** Index of its example. */
  readonly example: number;
  /** The right distribution over the options. */
  readonly target: readonly number[];
  /** Logarithms of the probabilities of the options, up to a constant. */
  readonly logits: readonly number[];
};

/** Questions whose largest probability is in one of ten equal ranges. */
export type ReliabilityBin = {
  readonly count: number;
  /** Mean of the largest probabilities. 0 without questions. */
  readonly confidence: number;
  /** Fraction of right answers. 0 without questions. */
  readonly accuracy: number;
};

/** Measures of the probabilities of the answers to several questions. */
export type DecisionMeasures = {
  readonly count: number;
  /** Fraction of questions whose most probable option is right. */
  readonly accuracy: number;
  /** Mean of -sum t_k log p_k, where t is the right distribution. */
  readonly loss: number;
  /** Mean of sum (p_k - t_k)^2. */
  readonly brier: number;
  /** Expected calibration error: sum over the bins of |right answers - sum of the largest probabilities|, divided by the count. */
  readonly ece: number;
  /**
   * About the `ece` that perfectly calibrated probabilities would have on these questions: by chance alone, right answers differ from their
   * expected number.
   */
  readonly eceOfChance: number;
  readonly bins: readonly ReliabilityBin[];
  readonly temperature: number;
};

const BINS = 10;
/** Bounds of fitted temperatures. */
const LOWEST = 0.05;
const HIGHEST = 20;
const GOLDEN = (Math.sqrt(5) - 1) / 2;
/** Width of the interval of log T at which a search ends. */
const PRECISION = 1e-6;

/** Returns the cross-entropy of a question at a temperature. */
export function lossOf({ logits, target }: ScoredQuestion, temperature: number): number {
  const scaled = logits.map((logit) => logit / temperature);
  const total = logSumExp(scaled);
  return target.reduce((sum, t, k) => (t === 0 ? sum : sum + t * (total - scaled[k]!)), 0);
}

/** Returns the mean of {@link lossOf}. */
function meanLoss(questions: readonly ScoredQuestion[], temperature: number): number {
  return questions.reduce((sum, one) => sum + lossOf(one, temperature), 0) / questions.length;
}

/** Returns the temperature with the lowest loss. The loss has one minimum over log T, so golden sections find it. */
export function fitTemperature(questions: readonly ScoredQuestion[]): number {
  const at = (log: number): number => meanLoss(questions, Math.exp(log));
  let [low, high] = [Math.log(LOWEST), Math.log(HIGHEST)];
  let [left, right] = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
  let [leftLoss, rightLoss] = [at(left), at(right)];
  while (high - low > PRECISION)
    if (leftLoss <= rightLoss) {
      [high, right, rightLoss] = [right, left, leftLoss];
      left = high - GOLDEN * (high - low);
      leftLoss = at(left);
    } else {
      [low, left, leftLoss] = [left, right, rightLoss];
      right = low + GOLDEN * (high - low);
      rightLoss = at(right);
    }
  return Math.exp((low + high) / 2);
}

/** Measures the answers to at least one question. */
export function measure(questions: readonly ScoredQuestion[], temperature: number): DecisionMeasures {
  const count = questions.length;
  const sums = Array.from({ length: BINS }, () => ({ count: 0, confidence: 0, accuracy: 0, variance: 0 }));
  let [brier, accuracy] = [0, 0];
  for (const { logits, target } of questions) {
    const p = probabilitiesOf(logits, temperature);
    const most = Math.max(...p);
    const hit = target[p.indexOf(most)]!;
    const bin = sums[Math.min(BINS - 1, Math.floor(most * BINS))]!;
    bin.count += 1;
    bin.confidence += most;
    bin.accuracy += hit;
    bin.variance += most * (1 - most);
    accuracy += hit;
    brier += p.reduce((sum, one, k) => sum + (one - target[k]!) ** 2, 0);
  }
  const gap = sums.reduce((sum, bin) => sum + Math.abs(bin.accuracy - bin.confidence), 0);
  // the mean distance of a normal number with a variance from its own mean is sqrt(2 / pi variance)
  const chance = sums.reduce((sum, { variance }) => sum + Math.sqrt((2 / Math.PI) * variance), 0);
  const bins = sums.map((bin) => ({
    count: bin.count,
    confidence: bin.confidence / Math.max(1, bin.count),
    accuracy: bin.accuracy / Math.max(1, bin.count),
  }));
  const loss = meanLoss(questions, temperature);
  return {
    count,
    accuracy: accuracy / count,
    loss,
    brier: brier / count,
    ece: gap / count,
    eceOfChance: chance / count,
    bins,
    temperature,
  };
}
