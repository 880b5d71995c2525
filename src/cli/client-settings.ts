import { readFileSync } from 'node:fs'
import { clientEnvironment, userConfigFolder } from '../platform/config.ts'
import { Secret } from '../platform/security/secret.ts'
import { readCredentials } from './account/credentials.ts'
import { CommandError, exitCodes, fileReason, wrongUsage } from './command-error.ts'

/** The flags of every command that is a client of a gateway. */
export interface ClientFlags {
  readonly baseUrl?: string
  readonly keyFile?: string
  readonly json?: boolean
}

/** The gateway that a command calls, and its credential. */
export interface ClientSettings {
  /** The address without a slash at the end. */
  readonly baseUrl: string
  /** An API key or agent token. Null when there is none. */
  readonly credential: Secret | null
  /** Where `credential` was found, in the form that messages use, such as `BRIGADE_KEY` or `--key-file k.txt`. */
  readonly credentialFrom: string
}

const defaultAddress = 'http://127.0.0.1:8787'
const loopback = new Set(['127.0.0.1', '[::1]', 'localhost'])

/**
 * Returns the address and the credential. Each comes from the first of these places that has it: the flags, the environment (BRIGADE; BRIGADE_KEY,
 * BRIGADE_KEY_FILE), and the stored login. When none of them has an address, it is that of the gateway on this computer. A stored key is sent only to
 * the gateway that issued it. Throws CommandError when one of the values cannot be used. Tests pass `env` in place of the environment.
 */
export function clientSettings(flags: ClientFlags, env?: Readonly<Record<string, string | undefined>>): ClientSettings {
  const environment = clientEnvironmentOrError(env)
  const kept = readCredentials(userConfigFolder(env))
  const address = flags.baseUrl ?? environment.address
  const from = flags.baseUrl === undefined ? 'BRIGADE' : '--base-url'
  const baseUrl = address === null ? (kept?.base_url ?? defaultAddress) : addressOf(address, from)
  if (flags.keyFile !== undefined) {
    const credentialFrom = `--key-file ${flags.keyFile}`
    return { baseUrl, credential: usable(new Secret(readKeyFile(flags.keyFile)), credentialFrom), credentialFrom }
  }
  if (environment.key !== null) return { baseUrl, credential: usable(environment.key, environment.keyVariable), credentialFrom: environment.keyVariable }
  const credentialFrom = 'brigade login'
  if (kept === null) return { baseUrl, credential: null, credentialFrom }
  return { baseUrl, credential: isSameGateway(kept.base_url, baseUrl) ? usable(new Secret(kept.key), credentialFrom) : null, credentialFrom }
}

/** Returns the credential of the settings. Throws CommandError (exit code 3) when there is none for this gateway. */
export function credentialOf({ baseUrl, credential }: ClientSettings): Secret {
  if (credential !== null) return credential
  throw new CommandError(`you are not signed in to ${baseUrl}. Set BRIGADE_KEY to an API key of it, or run brigade login --base-url ${baseUrl}.`, {
    exitCode: exitCodes.refused,
    code: 'not_signed_in',
  })
}

/** Removes the parts that people add to an address: a slash at the end, /v1, /mcp. Throws CommandError. */
export function addressOf(text: string, from: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && (url.username !== '' || url.password !== '')) throw wrongUsage(`${from} must not hold a user or password; a key goes into BRIGADE_KEY.`)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const isHostAlone = /^[a-z0-9.-]+(:\d+)?\/?$/i.test(text)
    const example = isHostAlone ? `${loopback.has(text.split(':')[0] ?? '') ? 'http' : 'https'}://${text}` : 'https://gateway.example.com'
    throw wrongUsage(`${from} must be an http or https URL such as ${example}, not "${text}".`)
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/(v1|mcp)$/, '')
}

function clientEnvironmentOrError(env: Readonly<Record<string, string | undefined>> | undefined): ReturnType<typeof clientEnvironment> {
  try {
    return clientEnvironment(env)
  } catch (cause) {
    throw wrongUsage(`the file of BRIGADE_KEY_FILE cannot be read: ${fileReason(cause)}.`, cause)
  }
}

function readKeyFile(path: string): string {
  try {
    // The path - means stdin, as in other commands.
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch (cause) {
    throw wrongUsage(`--key-file: ${path} cannot be read: ${fileReason(cause)}.`, cause)
  }
}

/**
 * Returns the credential. Throws CommandError unless it is visible ASCII without spaces, because the error of the HTTP client would print an invalid
 * credential.
 */
function usable(credential: Secret, from: string): Secret {
  if (/^[!-~]+$/.test(credential.reveal())) return credential
  throw wrongUsage(`${from} does not hold a key: ${credential.reveal() === '' ? 'it is empty' : 'it has spaces, line breaks or letters that no key has'}.`)
}

/** Returns whether both addresses are the same gateway. Host names that mean this computer count as equal. */
function isSameGateway(kept: string, called: string): boolean {
  const plain = (text: string): string => {
    const url = new URL(text)
    if (loopback.has(url.hostname)) url.hostname = 'localhost'
    return url.href.replace(/\/+$/, '')
  }
  return plain(kept) === plain(called)
}
