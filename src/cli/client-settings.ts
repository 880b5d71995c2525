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
  /** Without a slash at the end. */
  readonly baseUrl: string
  /** An API key or agent token; null: nobody is signed in. */
  readonly credential: Secret | null
  /** Where `credential` was found, in the words of messages: `BRIGADE_KEY`, `--key-file k.txt`. */
  readonly credentialFrom: string
}

const defaultAddress = 'http://127.0.0.1:8787'
const loopback = new Set(['127.0.0.1', '[::1]', 'localhost'])

/**
 * Address and credential, each from the first place that has it: the flags, the environment (BRIGADE; BRIGADE_KEY, BRIGADE_KEY_FILE), what
 * `brigade login` keeps, and for the address the gateway of this computer. A kept key goes to the gateway that gave it and to no other.
 * Throws CommandError when one of them cannot be used. `env`: in place of the environment, for tests.
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

/** The credential of the settings. Throws CommandError (exit code 3) when nobody is signed in at this gateway. */
export function credentialOf({ baseUrl, credential }: ClientSettings): Secret {
  if (credential !== null) return credential
  throw new CommandError(`you are not signed in to ${baseUrl}. Set BRIGADE_KEY to an API key of it, or run brigade login --base-url ${baseUrl}.`, {
    exitCode: exitCodes.refused,
    code: 'not_signed_in',
  })
}

/** Removes from a typed address what people add to it: a slash at the end, /v1, /mcp. Throws CommandError. */
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
    // - is stdin, as in other commands.
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch (cause) {
    throw wrongUsage(`--key-file: ${path} cannot be read: ${fileReason(cause)}.`, cause)
  }
}

/** A key is visible ASCII without spaces. Anything else would be shown by the error of the HTTP client. */
function usable(credential: Secret, from: string): Secret {
  if (/^[!-~]+$/.test(credential.reveal())) return credential
  throw wrongUsage(`${from} does not hold a key: ${credential.reveal() === '' ? 'it is empty' : 'it has spaces, line breaks or letters that no key has'}.`)
}

/** Host names that mean this computer; they are interchangeable. */
function isSameGateway(kept: string, called: string): boolean {
  const plain = (text: string): string => {
    const url = new URL(text)
    if (loopback.has(url.hostname)) url.hostname = 'localhost'
    return url.href.replace(/\/+$/, '')
  }
  return plain(kept) === plain(called)
}
