/** Calls the endpoints that take the session of a person and no API key. Decision 0758 says why. */
import { type GatewayClient, gatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { userConfigFolder } from '../../platform/config.ts'
import { type ClientFlags, type ClientSettings, clientSettings } from '../client-settings.ts'
import { CommandError, commandErrorOf, exitCodes } from '../command-error.ts'
import { plain } from '../command-output.ts'
import { gatewayFetch } from '../gateway-fetch.ts'
import { type KeptSession, readSession } from './session-store.ts'
import { signInByLink, signOut } from './sign-in-by-link.ts'

/** The flags of a command that acts as a person. */
export interface PersonFlags extends ClientFlags {
  readonly email?: string
}

/**
 * Runs `act` as a person: with the session of `brigade login --link`, or else with a session of this command that the operator of this computer makes. With
 * `reads`, an agent token is enough. Throws CommandError (3) when nobody is signed in.
 */
export async function asPerson(flags: PersonFlags, reads: boolean, act: (client: GatewayClient) => Promise<void>): Promise<void> {
  const settings = clientSettings(flags)
  if (reads && isAgentToken(settings)) return acting(settings, bearerClient(settings), act)
  const kept = readSession(userConfigFolder())
  if (kept !== null && new URL(kept.base_url).href === new URL(settings.baseUrl).href && flags.email === undefined)
    return acting({ ...settings, credentialFrom: 'brigade login --link' }, cookieClient(settings, kept), act)
  const { firstOwner, localSignInLink } = await import('../operator/local-link.ts')
  const email = flags.email ?? firstOwner
  const link = await localSignInLink(settings.baseUrl, email)
  if (link === null) throw noPerson(settings, reads)
  const cookie = await signInByLink(settings.baseUrl, link)
  if (flags.json !== true) process.stderr.write(`as ${plain(email)}\n`)
  try {
    await acting(settings, cookieClient(settings, { cookie }), act)
  } finally {
    // The session was for this command only.
    await signOut(settings.baseUrl, cookie)
  }
}

async function acting(settings: ClientSettings, client: GatewayClient, act: (client: GatewayClient) => Promise<void>): Promise<void> {
  try {
    await act(client)
  } catch (thrown) {
    throw commandErrorOf(thrown, settings)
  }
}

function noPerson({ baseUrl }: ClientSettings, reads: boolean): CommandError {
  const other = reads ? ' An agent token may read it too: set BRIGADE_KEY to one.' : ''
  return new CommandError(
    `a person must be signed in for this; an API key is not enough. Use the console (${baseUrl}/console), or run brigade login --link <sign-in link> with a link of the operator.${other}`,
    { exitCode: exitCodes.refused, code: 'not_signed_in' },
  )
}

function isAgentToken({ credential }: ClientSettings): boolean {
  return credential !== null && credential.reveal().split('.').length === 3
}

function bearerClient({ baseUrl, credential }: ClientSettings): GatewayClient {
  return gatewayClient({ baseUrl, credential: credential?.reveal() ?? '', fetch: gatewayFetch(baseUrl) })
}

/** Returns a client that sends the cookie in place of a bearer credential. */
function cookieClient({ baseUrl }: ClientSettings, { cookie }: Pick<KeptSession, 'cookie'>): GatewayClient {
  const inner = gatewayFetch(baseUrl)
  return gatewayClient({
    baseUrl,
    credential: 'cookie',
    fetch: (input, init) => {
      const headers = new Headers(init?.headers)
      headers.delete('authorization')
      headers.set('cookie', cookie)
      return inner(input, { ...init, headers })
    },
  })
}
