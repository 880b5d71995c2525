import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root of the repository. */
export const checkout = fileURLToPath(new URL('../..', import.meta.url))

/** Returns the shell blocks of a page of docs/start, in order. */
export function blocksOf(page: 'connect-a-client.md' | 'with-curl.md'): string[] {
  return [...readFileSync(join(checkout, 'docs', 'start', page), 'utf8').matchAll(/^```sh\n(.*?)^```/gms)].map(([, lines = '']) => lines)
}

/** Returns the command lines of the one block in docs/start/connect-a-client.md that contains this text. */
export function blockWith(text: string): string[] {
  const found = blocksOf('connect-a-client.md').filter(lines => lines.includes(text))
  if (found.length !== 1) throw new Error(`${found.length} blocks of the page have ${text}`)
  return (found[0] ?? '').trimEnd().split('\n')
}
