/** A moment and a format -> text of strftime, in local time and the C locale, as in glibc. */
import { valueError } from '../python/py-error.ts';

const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');
const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);
const DAY_MS = 86_400_000;

/** Returns the day of the year, 1 for the first of January. */
function dayOfYear(moment: Date): number {
  const [year, month, day] = [moment.getFullYear(), moment.getMonth(), moment.getDate()];
  return 1 + Math.round((Date.UTC(year, month, day) - Date.UTC(year, 0, 1)) / DAY_MS);
}

function padded(number: number, width = 2): string {
  return String(number).padStart(width, '0');
}

/** Directives that are abbreviations of a format. */
const COMPOSED: Readonly<Record<string, string>> = {
  c: '%a %b %e %H:%M:%S %Y',
  x: '%m/%d/%y',
  D: '%m/%d/%y',
  X: '%H:%M:%S',
  T: '%H:%M:%S',
  R: '%H:%M',
  F: '%Y-%m-%d',
};

/** The text of each directive. Python's now() has no time zone. */
const DIRECTIVES: Readonly<Record<string, (moment: Date) => string>> = {
  a: (moment) => DAYS[moment.getDay()]!.slice(0, 3),
  A: (moment) => DAYS[moment.getDay()]!,
  b: (moment) => MONTHS[moment.getMonth()]!.slice(0, 3),
  B: (moment) => MONTHS[moment.getMonth()]!,
  d: (moment) => padded(moment.getDate()),
  e: (moment) => String(moment.getDate()).padStart(2),
  f: (moment) => padded(moment.getMilliseconds() * 1000, 6),
  H: (moment) => padded(moment.getHours()),
  I: (moment) => padded(moment.getHours() % 12 || 12),
  j: (moment) => padded(dayOfYear(moment), 3),
  m: (moment) => padded(moment.getMonth() + 1),
  M: (moment) => padded(moment.getMinutes()),
  p: (moment) => (moment.getHours() < 12 ? 'AM' : 'PM'),
  s: (moment) => String(Math.floor(moment.getTime() / 1000)),
  S: (moment) => padded(moment.getSeconds()),
  u: (moment) => String(moment.getDay() || 7),
  U: (moment) => padded(Math.floor((dayOfYear(moment) + 6 - moment.getDay()) / 7)),
  w: (moment) => String(moment.getDay()),
  W: (moment) => padded(Math.floor((dayOfYear(moment) + 6 - ((moment.getDay() + 6) % 7)) / 7)),
  y: (moment) => padded(moment.getFullYear() % 100),
  Y: (moment) => String(moment.getFullYear()),
  z: () => '',
  Z: () => '',
  '%': () => '%',
};

/** Maximum ratio of the lengths of result and format: `%c`. */
export const MAX_GROWTH = 20;

/** Formats a moment. `%-d` has no leading zeros or blanks. */
export function strftime(moment: Date, format: string): string {
  return format.replace(/%(-?)(.?)/gs, (directive, minus: string, code: string) => {
    const composed = COMPOSED[code];
    if (composed !== undefined) return strftime(moment, composed);
    const text = DIRECTIVES[code]?.(moment);
    if (text === undefined) return valueError(`strftime: '${directive}' is not supported in chat templates`);
    return minus === '' ? text : text.replace(/^[0 ]+(?=.)/, '');
  });
}
