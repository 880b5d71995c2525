import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where the README stands. */
export const checkout = fileURLToPath(new URL('../..', import.meta.url))

/** The command lines of the one block of the README that has this text. */
export function blockWith(text: string): string[] {
  const blocks = readFileSync(join(checkout, 'README.md'), 'utf8').matchAll(/^```sh\n(.*?)^```/gms)
  const found = [...blocks].map(([, lines = '']) => lines).filter(lines => lines.includes(text))
  if (found.length !== 1) throw new Error(`${found.length} blocks of the README have ${text}`)
  return (found[0] ?? '').trimEnd().split('\n')
}
