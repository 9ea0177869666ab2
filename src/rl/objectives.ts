/** A token's ratio, advantage and log-probability -> its gain under the objective, and the derivatives. Pure, float64. */
import type { TrainingSettings } from './settings.ts';

/** A trained token. */
type Token = {
  /** Factor of its gain, held constant. */
  readonly scale: number;
  readonly advantage: number;
  readonly ratio: number;
  /** The ratio within the clip bounds. */
  readonly clipped: number;
  readonly fresh: number; // its log-probability under the weights being trained
  readonly old: number;
};

/** Gain of a token and its derivatives. The loss is minus the gain. */
type Gain = {
  readonly gain: number;
  /** d(gain) / d(ratio) */
  readonly byRatio: number;
  /** d(gain) / d(log-probability), the ratio held constant */
  readonly byLogprob: number;
};

/** Returns the gain of one token. */
export function gainOf(
  { scale, advantage, ratio, clipped, fresh, old }: Token,
  settings: TrainingSettings,
): Gain {
  const { objective } = settings;
  switch (objective) {
    case 'cispo':
      return {
        gain: scale * clipped * advantage * fresh,
        byRatio: 0,
        byLogprob: scale * clipped * advantage,
      };
    case 'ppo': {
      const isClipped = clipped * advantage < ratio * advantage;
      return {
        gain: scale * (isClipped ? clipped : ratio) * advantage,
        byRatio: isClipped ? 0 : scale * advantage,
        byLogprob: 0,
      };
    }
    case 'sapo': {
      const temperature = advantage > 0 ? settings.sapo_temperature_pos : settings.sapo_temperature_neg;
      const away = Math.exp(-temperature * Math.abs(ratio - 1)); // of the gate 1 / (1 + exp(-temperature (ratio - 1)))
      const gate = ratio > 1 ? 1 / (1 + away) : away / (1 + away);
      return {
        gain: scale * advantage * (4 / temperature) * gate,
        byRatio: (scale * advantage * 4 * away) / (1 + away) ** 2,
        byLogprob: 0,
      };
    }
    case 'importance_sampling':
      return { gain: scale * ratio * advantage, byRatio: scale * advantage, byLogprob: 0 };
    case 'dro': {
      const difference = fresh - old;
      return {
        gain: scale * (advantage * fresh - (settings.dro_beta / 2) * difference ** 2),
        byRatio: 0,
        byLogprob: scale * (advantage - settings.dro_beta * difference),
      };
    }
    default:
      return objective satisfies never;
  }
}
