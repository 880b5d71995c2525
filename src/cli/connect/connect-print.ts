/** Prints plans, written files and checks of `brigade connect`. */
import type { ConnectPlan } from '../../connect/connect-plan.ts'
import { plain, printLine } from '../command-output.ts'
import { styled } from '../terminal/style.ts'
import type { ReadyAgent } from './connect-check.ts'
import type { WrittenFile } from './connect-write.ts'
import { clientTitles } from './find-clients.ts'
import type { Checked } from './verify-client.ts'

/** Prints the steps that are left to the person. */
export function printNotes(notes: readonly string[]): void {
  if (notes.length === 0) return
  printLine('')
  for (const note of notes) printLine(plain(note))
}

/** Prints what belongs where. */
export function printPlan(plan: ConnectPlan, files: readonly { path: string; what: string; text: string }[], notes: readonly string[]): void {
  for (const { path, what, text } of files) printLine(`${plain(path)}  (${what})\n\n${text.trimEnd().replaceAll(/^(?=.)/gm, '  ')}\n`)
  if (plan.commands.length > 0) printLine(`Or, for the tools alone:\n\n${plan.commands.map(line => `  ${line}`).join('\n')}\n`)
  printLine('Nothing was written; --write merges it into the files.')
  printNotes(notes)
}

/** Prints what was written, or what will be written. */
export function printWritten(written: readonly WrittenFile[], isPlanned = false): void {
  for (const { path, what, outcome, changed, kept } of written) {
    printLine(`${(isPlanned ? planned : done)[outcome].padEnd(11)}${plain(path)}  (${what})`)
    for (const name of changed) printLine(`           ${plain(name)}`)
    if (kept.length > 0) printLine(`           kept as it was: ${plain(kept.join(', '))}  (--models sets it)`)
  }
}

const done = { unchanged: 'unchanged', created: 'created', changed: 'changed' } as const
const planned = { unchanged: 'unchanged', created: 'creates', changed: 'changes' } as const

/** Prints that the agent was made, and whether it is paused. */
export function printAgent({ name, id, isNew, isPaused }: ReadyAgent): void {
  if (isNew) printLine(`made the agent "${plain(name)}" (id ${id}); brigade agent budget ${shown(name)} --inr <rupees> sets its monthly budget`)
  if (isPaused) printLine(`the agent "${plain(name)}" is paused, so its calls are refused; brigade agent resume ${shown(name)} lets it go on`)
}

function shown(name: string): string {
  return /^[\w.@-]+$/.test(name) ? name : `"${plain(name)}"`
}

/** Prints the result of a check on one line. */
export function printChecked({ client, state, detail }: Checked): void {
  const mark = state === 'works' ? styled('green', 'works') : state === 'failed' ? styled('red', 'failed') : styled('yellow', 'not checked')
  printLine(`${clientTitles[client]}: ${mark}: ${plain(detail)}`)
}
