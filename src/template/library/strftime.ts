/** A moment and a format -> text of strftime, in local time and the C locale, as in glibc. */

const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');
const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);
const DAY_MS = 86_400_000;

/** A number with its width and fill character. */
type Padded = { readonly number: number; readonly width: number; readonly fill: string };

function padded(number: number, width = 2, fill = '0'): Padded {
  return { number, width, fill };
}

/** 0 on the first of January. */
function dayOfYear(moment: Date): number {
  const start = Date.UTC(moment.getFullYear(), 0, 1);
  return Math.round((Date.UTC(moment.getFullYear(), moment.getMonth(), moment.getDate()) - start) / DAY_MS);
}

/** Year and week by ISO 8601. */
function isoWeek(moment: Date): { year: number; week: number } {
  const weekday = (moment.getDay() + 6) % 7; // Monday is 0
  const thursday = new Date(
    Date.UTC(moment.getFullYear(), moment.getMonth(), moment.getDate() - weekday + 3),
  );
  const year = thursday.getUTCFullYear();
  return { year, week: 1 + Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / DAY_MS / 7) };
}

/** Directives that combine others, as formats. */
const COMPOSED: Readonly<Record<string, string>> = {
  c: '%a %b %e %H:%M:%S %Y',
  x: '%m/%d/%y',
  D: '%m/%d/%y',
  X: '%H:%M:%S',
  T: '%H:%M:%S',
  R: '%H:%M',
  r: '%I:%M:%S %p',
  F: '%Y-%m-%d',
};

/** The value of each directive. */
const DIRECTIVES: Readonly<Record<string, (moment: Date) => string | Padded>> = {
  a: (moment) => DAYS[moment.getDay()]!.slice(0, 3),
  A: (moment) => DAYS[moment.getDay()]!,
  b: (moment) => MONTHS[moment.getMonth()]!.slice(0, 3),
  h: (moment) => MONTHS[moment.getMonth()]!.slice(0, 3),
  B: (moment) => MONTHS[moment.getMonth()]!,
  C: (moment) => padded(Math.floor(moment.getFullYear() / 100)),
  d: (moment) => padded(moment.getDate()),
  e: (moment) => padded(moment.getDate(), 2, ' '),
  f: (moment) => String(moment.getMilliseconds() * 1000).padStart(6, '0'),
  g: (moment) => padded(isoWeek(moment).year % 100),
  G: (moment) => padded(isoWeek(moment).year, 1),
  H: (moment) => padded(moment.getHours()),
  I: (moment) => padded(moment.getHours() % 12 || 12),
  j: (moment) => padded(dayOfYear(moment) + 1, 3),
  k: (moment) => padded(moment.getHours(), 2, ' '),
  l: (moment) => padded(moment.getHours() % 12 || 12, 2, ' '),
  m: (moment) => padded(moment.getMonth() + 1),
  M: (moment) => padded(moment.getMinutes()),
  n: () => '\n',
  p: (moment) => (moment.getHours() < 12 ? 'AM' : 'PM'),
  P: (moment) => (moment.getHours() < 12 ? 'am' : 'pm'),
  s: (moment) => padded(Math.floor(moment.getTime() / 1000), 1),
  S: (moment) => padded(moment.getSeconds()),
  t: () => '\t',
  u: (moment) => padded(moment.getDay() || 7, 1),
  U: (moment) => padded(Math.floor((dayOfYear(moment) + 7 - moment.getDay()) / 7)),
  V: (moment) => padded(isoWeek(moment).week),
  w: (moment) => padded(moment.getDay(), 1),
  W: (moment) => padded(Math.floor((dayOfYear(moment) + 7 - ((moment.getDay() + 6) % 7)) / 7)),
  y: (moment) => padded(moment.getFullYear() % 100),
  Y: (moment) => padded(moment.getFullYear(), 1),
  z: () => '', // Python's now() has no time zone
  Z: () => '',
  '%': () => '%',
};

/** Maximum width of a directive. */
const MAX_WIDTH = 100;
/** Maximum ratio of the lengths of result and format: `%100d`. */
export const MAX_GROWTH = 20;

/** Formats a moment. Unknown directives stay as they are. */
export function strftime(moment: Date, format: string): string {
  return format.replace(
    /%([-_0^#]*)(\d*)[EO]?([A-Za-z%])/g,
    (whole, flags: string, width: string, code: string) => {
      const composed = COMPOSED[code];
      const value = composed === undefined ? DIRECTIVES[code]?.(moment) : strftime(moment, composed);
      return value === undefined ? whole : layOut(value, flags, Math.min(Number(width), MAX_WIDTH));
    },
  );
}

function layOut(value: string | Padded, flags: string, width: number): string {
  const padFlag = /[-_0](?=[^-_0]*$)/.exec(flags)?.[0];
  if (typeof value === 'string') {
    const text = flags.includes('^') ? value.toUpperCase() : flags.includes('#') ? swapCase(value) : value;
    return text.padStart(width, padFlag === '0' ? '0' : ' ');
  }
  if (padFlag === '-') return String(value.number);
  const fill = padFlag === '_' ? ' ' : padFlag === '0' ? '0' : value.fill;
  return String(value.number).padStart(Math.max(width, value.width), fill);
}

/** glibc's `#` flag: names become upper case, AM and PM lower case. */
function swapCase(text: string): string {
  return text === 'AM' || text === 'PM' ? text.toLowerCase() : text.toUpperCase();
}
