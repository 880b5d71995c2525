/** Words for the text of tool answers: short lines that a model reads faster than JSON. */

/** Rupees as people write them: two digits from one rupee on, enough digits below. */
export function rupees(inr: number): string {
  if (inr === 0) return '₹0'
  if (Math.abs(inr) >= 1) return `₹${inr.toFixed(2)}`
  return `₹${Number(inr.toPrecision(3)).toString()}`
}

/** A count with its noun: `1 model`, `3 models`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** The parts that are there, with a dot between. */
export function line(...parts: readonly (string | null | undefined | false)[]): string {
  return parts.filter(part => typeof part === 'string' && part !== '').join(' · ')
}
