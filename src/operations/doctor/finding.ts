import { counted } from '../../platform/observe/terminal/counted.ts'
import { plain } from '../../platform/observe/terminal/plain-text.ts'
import { noPaint, type Paint } from '../../platform/observe/terminal/terminal.ts'

/** The result of one check of the doctor. */
export interface Finding {
  readonly what: string
  readonly state: 'ok' | 'warning' | 'wrong'
  readonly detail: string
}

const marks = { ok: ['ok      ', 'green'], warning: ['warning ', 'yellow'], wrong: ['WRONG   ', 'red'] } as const

/** Prints the findings and a line with their numbers. Returns the exit code: 1 when something is wrong, otherwise 0. */
export function printReport(findings: readonly Finding[], asJson: boolean, print: (line: string) => void, paint: Paint = noPaint): number {
  if (asJson) print(JSON.stringify(findings))
  else {
    for (const { what, state, detail } of findings) print(`${paint(marks[state][1], marks[state][0])}${plain(`${what}: ${detail}`)}`)
    print(summaryOf(findings, paint))
  }
  return findings.some(finding => finding.state === 'wrong') ? 1 : 0
}

/** Returns a line such as `12 ok, 1 warning, 1 wrong`. States that do not occur are left out. */
function summaryOf(findings: readonly Finding[], paint: Paint): string {
  const numberOf = (state: Finding['state']): number => findings.filter(finding => finding.state === state).length
  const [ok, warnings, wrong] = [numberOf('ok'), numberOf('warning'), numberOf('wrong')]
  const parts = [
    paint('green', `${ok} ok`),
    ...(warnings > 0 ? [paint('yellow', counted(warnings, 'warning'))] : []),
    ...(wrong > 0 ? [paint('red', `${wrong} wrong`)] : []),
  ]
  return parts.join(', ')
}
