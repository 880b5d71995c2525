import { readFileSync } from 'node:fs'

/** The name of the gateway in requests to providers. */
export const userAgent = `brigade/${packageVersion()}`

function packageVersion(): string {
  const value: unknown = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  return typeof value === 'object' && value !== null && 'version' in value ? String(value.version) : '0'
}
