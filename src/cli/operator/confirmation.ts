import { createInterface } from 'node:readline/promises'
import { wrongUsage } from '../command-error.ts'

/** Asks a person to confirm. The question goes to stderr, because a program may read stdout. Throws CommandError (2) when no person can answer. */
export async function confirmed(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw wrongUsage(`${question} Nobody is there to ask: add --yes.`)
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await prompt.question(`${question} [y/N] `)).trim())
  } finally {
    prompt.close()
  }
}
