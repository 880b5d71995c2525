import { readFileSync } from 'node:fs'

/** How the gateway names itself to providers. */
export const userAgent = `brigade/${packageVersion()}`

function packageVersion(): string {
  const value: unknown = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  return typeof value === 'object' && value !== null && 'version' in value ? String(value.version) : '0'
}
