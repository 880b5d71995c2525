import type { Command } from 'commander'
import { clientEnvironment, userConfigFolder } from '../../platform/config.ts'
import { tokenCache } from '../agent/agent-token-command.ts'
import { addExamples } from '../client-command.ts'
import { CommandError, fileReason } from '../command-error.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { gatewayFetch } from '../gateway-fetch.ts'
import { readSession, removeSession } from '../person/session-store.ts'
import { type Credentials, readCredentials, removeCredentials } from './credentials.ts'

/** Maximum wait for the gateway. A slower gateway does not delay the logout. */
const patienceMs = 3_000

interface KeyOfGateway {
  readonly id: number
  readonly name: string
}

/** Adds the command `brigade logout`. */
export function addLogoutCommand(program: Command): void {
  const command = program
    .command('logout')
    .description('forget the key that brigade login keeps, and the agent tokens kept on this computer')
    .option('--json', 'print JSON')
  addExamples(command, [['brigade logout', 'nothing that opens a gateway is left in this home']])
  command.action(logout)
}

async function logout({ json }: { readonly json?: boolean }): Promise<void> {
  const folder = userConfigFolder()
  const kept = readCredentials(folder)
  // The gateway is asked before the local key is deleted, because afterwards nobody can find out which key it was.
  const key = kept === null ? null : await keyOf(kept)
  const session = readSession(folder)
  if (session !== null) await (await import('../person/sign-in-by-link.ts')).signOut(session.base_url, session.cookie)
  const tokens = forgotten(folder)
  if (json === true) return printJson({ base_url: kept?.base_url ?? null, key, tokens })
  if (kept === null && session === null && tokens === 0) printLine('Nobody was signed in; nothing was kept.')
  if (kept !== null) printLine(`Signed out of ${plain(kept.base_url)}. Its key is no longer on this computer.`)
  if (session !== null) printLine(`The session at ${plain(session.base_url)} is over.`)
  if (tokens > 0) printLine(`${tokens} kept agent token${tokens === 1 ? ' is' : 's are'} gone too.`)
  if (key !== null) printLine(`The key "${plain(key.name)}" itself stays valid until somebody ends it: DELETE /me/keys/${key.id}, or brigade admin revoke-key.`)
  if (keyIsInEnvironment()) printLine('BRIGADE_KEY or BRIGADE_KEY_FILE is still set in this shell: commands go on using it.')
}

function forgotten(folder: string): number {
  try {
    removeCredentials(folder)
    removeSession(folder)
    return tokenCache().clear()
  } catch (cause) {
    throw new CommandError(`what is kept in ${folder} cannot be removed: ${fileReason(cause)}. Remove the folder yourself.`, { cause })
  }
}

/** Returns the id and name of the key, if the gateway answers in time. */
async function keyOf({ base_url, key }: Credentials): Promise<KeyOfGateway | null> {
  try {
    const reply = await gatewayFetch(base_url, patienceMs)(`${base_url}/v1/me/whoami`, { headers: { authorization: `Bearer ${key}` } })
    const me = (await reply.json()) as { readonly key?: Partial<KeyOfGateway> }
    const { id, name } = me.key ?? {}
    return reply.ok && typeof id === 'number' && typeof name === 'string' ? { id, name } : null
  } catch {
    return null
  }
}

function keyIsInEnvironment(): boolean {
  try {
    return clientEnvironment().key !== null
  } catch {
    return true
  }
}
