/** How often a test repeats what it draws: as often as a variable says, else all of `full` in the project `slow`, a tenth in the quick ones. */
export function countOf(variable: string, full: number): number {
  const asked = process.env[variable];
  if (asked !== undefined) return Number(asked);
  return process.env['ONPOLICY_QUICK'] ? Math.ceil(full / 10) : full;
}
