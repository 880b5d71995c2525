/** The credential of an MCP server, as `brigade tools servers add` takes it. A secret never comes from the command line, which other users can read. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { fileReason, wrongUsage } from '../command-error.ts'
import { plain } from '../command-output.ts'

export interface CredentialFlags {
  readonly headerName?: string
  readonly headerFrom?: string
  readonly clientCredentials?: boolean
  readonly perPerson?: boolean
  readonly clientId?: string
  readonly clientSecretFrom?: string
  readonly scopes?: string
  readonly issuer?: string
}

/** Adds the flags that say what a server requires. Returns the command. */
export function addCredentialFlags(command: Command): Command {
  return command
    .option('--header-name <name>', 'the header with which Brigade signs in there, such as Authorization')
    .option('--header-from <file>', 'file with its value, - for stdin; left out on a terminal: asks for it and does not show it')
    .option('--client-credentials', 'Brigade gets tokens of the organisation from an issuer, with --client-id and a secret')
    .option('--per-person', 'each person connects by OAuth, and agents act with the connection of the person behind them')
    .option('--client-id <id>', 'what Brigade is at the issuer')
    .option('--client-secret-from <file>', 'file with the secret of the client, - for stdin; with --client-credentials on a terminal: asks for it')
    .option('--scopes <scopes>', 'scopes with spaces between them (default: those that the server names)')
    .option('--issuer <url>', 'the only issuer that gets the secret (default: the first one that the server names)')
}

/** Returns the field `auth` of a registration. Null: the server requires nothing. Throws CommandError for flags that do not go together. */
export async function credentialOf(flags: CredentialFlags): Promise<object | null> {
  const { headerName, headerFrom, clientCredentials = false, perPerson = false, clientId, clientSecretFrom, scopes, issuer } = flags
  const isHeader = headerName !== undefined || headerFrom !== undefined
  if ([isHeader, clientCredentials, perPerson].filter(is => is).length > 1)
    throw wrongUsage('a server has one credential: --header-name, --client-credentials or --per-person.')
  if (isHeader) return headerOf(headerName, headerFrom)
  if (!clientCredentials && !perPerson) {
    if (clientId === undefined && clientSecretFrom === undefined && scopes === undefined && issuer === undefined) return null
    throw wrongUsage('--client-id, --client-secret-from, --scopes and --issuer need --client-credentials or --per-person.')
  }
  if (clientCredentials && clientId === undefined) throw wrongUsage('--client-credentials needs --client-id.')
  if (perPerson && clientId === undefined && clientSecretFrom !== undefined) throw wrongUsage('--client-secret-from needs --client-id.')
  const isAsked = clientCredentials || clientSecretFrom !== undefined
  return {
    kind: clientCredentials ? 'client_credentials' : 'oauth_user',
    client_id: clientId,
    ...(isAsked ? { client_secret: await secretOf(clientSecretFrom, '--client-secret-from', 'Secret of the client:') } : {}),
    scopes,
    issuer,
  }
}

async function headerOf(name: string | undefined, from: string | undefined): Promise<object> {
  if (name === undefined) throw wrongUsage('--header-from needs --header-name, such as Authorization.')
  return { kind: 'header', header_name: name, header_value: await secretOf(from, '--header-from', `Value of the header ${plain(name)}:`) }
}

/** Returns a secret from a file, or from a question on the terminal. */
async function secretOf(from: string | undefined, flag: string, question: string): Promise<string> {
  const { askSecret } = await import('../terminal/questions.ts')
  const value = from === undefined ? await askSecret(question, `add ${flag} <file>`) : textOf(from, flag)
  if (value === '') throw wrongUsage(flag === '--header-from' ? 'the value of the header is empty.' : 'the secret of the client is empty.')
  return value
}

function textOf(path: string, flag: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch (cause) {
    throw wrongUsage(`${flag}: ${path} cannot be read: ${fileReason(cause)}.`, cause)
  }
}
