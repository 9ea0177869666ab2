/** Logits of options and what is right -> how good their probabilities are, and the calibration that makes them best. */
import { type Calibration, logSumExp, probabilitiesOf } from '../../answer/index.ts';
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
  /** Divides the logits. */
  readonly temperature: number;
  /** Share of the probability that is spread evenly over the options. */
  readonly noise: number;
};

const BINS = 10;
/** Bounds of fitted temperatures. */
const LOWEST = 0.05;
const HIGHEST = 20;
/** Most noise that is fitted: the order of the options must stay visible. */
const MOST_NOISE = 0.99;
/** By how much noise must lower the summed loss to be used: the price of one more fitted number (Akaike). */
const PRICE = 1;
const GOLDEN = (Math.sqrt(5) - 1) / 2;
/** Width of the interval at which a search ends. */
const PRECISION = 1e-6;

/** Returns the cross-entropy of a question. */
export function lossOf({ logits, target }: ScoredQuestion, { temperature, noise }: Calibration): number {
  return crossEntropy(target, logprobsOf(logits, temperature), noise);
}

function logprobsOf(logits: readonly number[], temperature: number): number[] {
  const scaled = logits.map((logit) => logit / temperature);
  const total = logSumExp(scaled);
  return scaled.map((one) => one - total);
}

function crossEntropy(target: readonly number[], logprobs: readonly number[], noise: number): number {
  const mixed = (logprob: number): number =>
    noise === 0 ? logprob : Math.log((1 - noise) * Math.exp(logprob) + noise / target.length);
  return target.reduce((sum, t, k) => (t === 0 ? sum : sum - t * mixed(logprobs[k]!)), 0);
}

/** Returns the sum of {@link lossOf}. */
function lossOfAll(questions: readonly ScoredQuestion[], calibration: Calibration): number {
  return questions.reduce((sum, one) => sum + lossOf(one, calibration), 0);
}

/** Returns the temperature with the lowest loss without noise. */
export function fitTemperature(questions: readonly ScoredQuestion[]): number {
  return lowestTemperature((temperature) => lossOfAll(questions, { temperature, noise: 0 }));
}

/**
 * Returns the calibration with the lowest loss. A temperature alone makes sure logits surer without end; noise is a share of right answers
 * that no logit predicts, as where people answer wrongly. It is 0 unless it lowers the loss by more than chance would.
 */
export function fitCalibration(questions: readonly ScoredQuestion[]): Calibration {
  const alone = { temperature: fitTemperature(questions), noise: 0 };
  const noiseAt = (temperature: number): { readonly noise: number; readonly loss: number } => {
    const rows = questions.map(({ logits }) => logprobsOf(logits, temperature));
    const at = (noise: number): number =>
      questions.reduce((sum, { target }, i) => sum + crossEntropy(target, rows[i]!, noise), 0);
    const noise = lowest(at, 0, MOST_NOISE);
    return { noise, loss: at(noise) };
  };
  const temperature = lowestTemperature((one) => noiseAt(one).loss);
  const { noise, loss } = noiseAt(temperature);
  return lossOfAll(questions, alone) - loss > PRICE ? { temperature, noise } : alone;
}

function lowestTemperature(at: (temperature: number) => number): number {
  return Math.exp(lowest((log) => at(Math.exp(log)), Math.log(LOWEST), Math.log(HIGHEST)));
}

/** Returns where a function with one minimum between two numbers is lowest, by golden sections. */
function lowest(at: (value: number) => number, from: number, to: number): number {
  let [low, high] = [from, to];
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
  return (low + high) / 2;
}

/** Measures the answers to at least one question. */
export function measure(questions: readonly ScoredQuestion[], calibration: Calibration): DecisionMeasures {
  const count = questions.length;
  const sums = Array.from({ length: BINS }, () => ({ count: 0, confidence: 0, accuracy: 0, variance: 0 }));
  let [brier, accuracy] = [0, 0];
  for (const { logits, target } of questions) {
    const p = probabilitiesOf(logits, calibration);
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
  return {
    count,
    accuracy: accuracy / count,
    loss: lossOfAll(questions, calibration) / count,
    brier: brier / count,
    ece: gap / count,
    eceOfChance: chance / count,
    bins,
    ...calibration,
  };
}
