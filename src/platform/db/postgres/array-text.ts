/** Arrays as PostgreSQL reads them. */
import type { SqlValue } from '../db.ts'

/**
 * Returns an array as PostgreSQL text, and other values unchanged. The driver does the same, but much more slowly for each element, which
 * matters for a flush of thousands of usage rows.
 */
export function arrayText(value: SqlValue): unknown {
  if (!Array.isArray(value)) return value
  if (value.length > 0 && value.every(isPlainText)) return `{"${value.join('","')}"}`
  if (value.every(isPlainNumber)) return `{${value.join(',')}}`
  let text = ''
  for (const item of value as readonly unknown[]) {
    if (text !== '') text += ','
    if (item === null || typeof item === 'number' || typeof item === 'bigint' || typeof item === 'boolean') text += `${item}`
    else if (typeof item === 'string') text += `"${needsEscape.test(item) ? item.replaceAll(/["\\]/g, '\\$&') : item}"`
    else if (item instanceof Date) text += item.toISOString()
    else return value
  }
  return `{${text}}`
}

const needsEscape = /["\\]/
// The columns of a flush are nearly always one of these two, and `join` makes no text for each element.
const isPlainText = (item: unknown): boolean => typeof item === 'string' && !needsEscape.test(item)
const isPlainNumber = (item: unknown): boolean => typeof item === 'number' || typeof item === 'bigint' || typeof item === 'boolean'
