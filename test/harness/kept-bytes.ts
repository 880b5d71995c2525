import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestApp } from './app.ts'

/** Returns the forms in which a file or column could contain a value. */
export function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  // Inside a longer base64 text, the value begins at one of three offsets. The complete groups in the middle are then the same.
  const shifted = [0, 1, 2].map(pad =>
    Buffer.concat([Buffer.alloc(pad, 0x20), bytes])
      .toString('base64')
      .slice(pad === 0 ? 0 : 4, -4),
  )
  return [secret, bytes.toString('hex'), bytes.toString('base64'), bytes.toString('base64url'), ...shifted].filter(form => form.length > 11)
}

/** Returns everything that a gateway has stored, by place: the database, the log, and each file of the data folder except the operator's own files. */
export async function keptBytes(app: TestApp): Promise<ReadonlyMap<string, string>> {
  await app.gateway.app.limits.flushNow()
  return new Map([
    ['database', await app.dump()],
    ['log', app.logLines.join('\n')],
    ...files(app.dataDir)
      .filter(file => !file.endsWith('brigade.config.json'))
      .map(file => [file.slice(app.dataDir.length), readFileSync(file, 'latin1')] as const),
  ])
}

/** Returns which secrets were found, where and in which form. Tests expect an empty list. */
export function foundIn(kept: ReadonlyMap<string, string>, secrets: ReadonlyMap<string, string>): string[] {
  const found: string[] = []
  for (const [place, text] of kept)
    for (const [name, secret] of secrets) for (const form of formsOf(secret)) if (text.includes(form)) found.push(`${name} in ${place}: ${form}`)
  return found
}

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? files(path) : entry.isFile() ? [path] : []
  })
}
