/** The log as a person reads it on a terminal. Programs get JSON lines, because a log that is redirected is no terminal. Decision 0754 says why. */
import { isObject } from '../../values/json.ts'
import { plain, plainShort } from './plain-text.ts'
import type { Paint, Style, Terminal } from './terminal.ts'

const levels: readonly (readonly [from: number, name: string, style: Style])[] = [
  [60, 'fatal', 'red'],
  [50, 'error', 'red'],
  [40, 'warning', 'yellow'],
  [30, '', 'dim'],
]
/** Fields that the line shows in its own way. */
const own = new Set(['time', 'level', 'msg', 'error', 'stack'])
const messageMaxChars = 1000
const fieldMaxChars = 200
/** Names of events, such as `route_failed` or `memory.intent_unresolved`. They are shown as words. */
const eventName = /^[a-z]+([._][a-z]+)+$/

/** Returns a sink for the JSON lines of the log that shows them as text. */
export function terminalSink(terminal: Terminal): { write(line: string): void } {
  return { write: line => terminal.lines(logText(line, terminal.paint)) }
}

/** Returns the text of one JSON line of the log. A line that is no JSON stays as it is, without control characters. */
export function logText(line: string, paint: Paint): string {
  const fields = parsed(line)
  if (fields === null) return plain(line.trimEnd())
  const [, name = '', style = 'dim'] = levels.find(([from]) => Number(fields['level']) >= from) ?? []
  const message = String(fields['msg'] ?? '')
  const said = plainShort(eventName.test(message) ? message.replaceAll(/[._]/g, ' ') : message, messageMaxChars)
  const facts = Object.entries(fields)
    .filter(([field]) => !own.has(field))
    .map(([field, value]) => `${field} ${plainShort(String(value), fieldMaxChars)}`)
  const error = fields['error'] === undefined ? [] : [plainShort(String(fields['error']), messageMaxChars)]
  const first = [paint('dim', timeText(Date.parse(String(fields['time'])))), ...(name === '' ? [] : [paint(style, name)]), said].join('  ')
  const more = [...error, ...facts].join(', ')
  const stack = String(fields['stack'] ?? '')
    .split('\n')
    .filter(frame => frame !== '')
    .map(frame => `\n    ${paint('dim', plainShort(frame.trim(), fieldMaxChars))}`)
  return `${first}${more === '' ? '' : paint('dim', ` (${more})`)}${stack.join('')}`
}

/** Returns the time of day on this machine. */
export function timeText(ms: number): string {
  const at = new Date(ms)
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(part => String(part).padStart(2, '0')).join(':')
}

function parsed(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
