/** Formats the text of tool answers as short lines. A model reads them faster than JSON. */

/** Returns rupees as people write them: with two digits after the point from one rupee on, and with as many as needed below one rupee. */
export function rupees(inr: number): string {
  if (inr === 0) return '₹0'
  if (Math.abs(inr) >= 1) return `₹${inr.toFixed(2)}`
  return `₹${Number(inr.toPrecision(3)).toString()}`
}

/** Returns a count with its noun, such as `1 model` or `3 models`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Returns the non-empty parts with a dot between them. */
export function line(...parts: readonly (string | null | undefined | false)[]): string {
  return parts.filter(part => typeof part === 'string' && part !== '').join(' · ')
}
