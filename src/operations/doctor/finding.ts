/** The result of one check of the doctor. */
export interface Finding {
  readonly what: string
  readonly state: 'ok' | 'warning' | 'wrong'
  readonly detail: string
}

const mark = { ok: 'ok      ', warning: 'warning ', wrong: 'WRONG   ' } as const

/** Prints the findings. Returns the exit code: 1 when something is wrong, otherwise 0. */
export function printReport(findings: readonly Finding[], asJson: boolean, print: (line: string) => void): number {
  if (asJson) print(JSON.stringify(findings))
  else for (const finding of findings) print(`${mark[finding.state]}${finding.what}: ${finding.detail}`)
  return findings.some(finding => finding.state === 'wrong') ? 1 : 0
}
