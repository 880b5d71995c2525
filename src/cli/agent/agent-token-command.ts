import { type Command, Option } from 'commander'
import { systemClock } from '../../platform/clock.ts'
import { userConfigFolder } from '../../platform/config.ts'
import { bootUuid } from '../../platform/values/ids.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import { type ClientFlags, type ClientSettings, clientSettings, credentialOf } from '../client-settings.ts'
import { CommandError, commandErrorOf, fileReason, wrongUsage } from '../command-error.ts'
import { printJson, printLine } from '../command-output.ts'
import { count } from '../option-values.ts'
import { type KeptToken, TokenCache, type TokenParams } from './token-cache.ts'

interface TokenFlags extends ClientFlags {
  readonly agent?: string
  readonly header?: boolean
  readonly headersJson?: boolean
  readonly scope?: string
  readonly ttlS?: number
  readonly fresh?: boolean
}

/** Maximum wait for the check of a stored token. It is short, because another program waits for the token. */
const checkTimeoutMs = 3_000

/** Returns the cache of the tokens of this user. */
export function tokenCache(): TokenCache {
  return new TokenCache(userConfigFolder(), { nowMs: () => systemClock.nowMs(), randomName: bootUuid })
}

/** Adds the command `brigade agent token`. It prints only the token to stdout, because other programs read it there. */
export function addAgentTokenCommand(agent: Command): void {
  const command = addClientFlags(
    agent.command('token').description('print a short-lived token that acts as an agent; kept for later calls until it nears its end'),
  )
    .argument('[agent]', 'name or id of the agent')
    .option('--agent <agent>', 'the same')
    .addOption(new Option('--header', 'print an Authorization header').conflicts(['json', 'headersJson']))
    .addOption(new Option('--headers-json', 'print {"Authorization":"Bearer …"}').conflicts('json'))
    .option('--scope <scopes>', 'some of "inference memory:read memory:write usage:read tools:call"; all when left out')
    .option('--ttl-s <seconds>', 'seconds of life, at most what the gateway allows', count)
    .option('--fresh', 'mint a new token even if one is kept')
  addExamples(command, [
    ['brigade agent token reviewer', 'as an auth command: Codex, apiKeyHelper of Claude Code'],
    ['brigade agent token reviewer --headers-json', 'headersHelper of Claude Code'],
    ['brigade agent token reviewer --scope "memory:read" --ttl-s 300', 'for less'],
    ['curl -H "$(brigade agent token reviewer --header)" $BRIGADE/v1/me/whoami', 'in a shell'],
  ])
  command.action(async (named: string | undefined, flags: TokenFlags) => {
    if (named !== undefined && flags.agent !== undefined && named !== flags.agent) throw wrongUsage(`say one agent: "${named}" or --agent "${flags.agent}".`)
    const agentName = (named ?? flags.agent ?? '').trim()
    if (agentName === '') throw wrongUsage('say which agent: brigade agent token <name or id>. brigade agent list shows them.')
    const settings = clientSettings(flags)
    printToken(await tokenOf(settings, agentName, flags), flags)
  })
}

/** Returns the cached token for this request if the gateway still accepts the token. Otherwise returns a new token and caches it. Throws CommandError. */
async function tokenOf(settings: ClientSettings, agent: string, flags: TokenFlags): Promise<KeptToken> {
  const params: TokenParams = { baseUrl: settings.baseUrl, credential: credentialOf(settings), agent, scope: flags.scope?.trim(), ttlS: flags.ttlS }
  const cache = tokenCache()
  const kept = flags.fresh === true ? null : cache.find(params)
  if (kept !== null) {
    if (await isStillTaken(kept)) return kept
    cache.drop(params)
  }
  const token = await mint(params, settings)
  try {
    cache.keep(params, token)
  } catch (thrown) {
    // When the home folder cannot be written, each run mints a new token with a call to the gateway.
    process.stderr.write(`brigade: the token is not kept for the next call: ${fileReason(thrown)}\n`)
  }
  return token
}

/**
 * Returns whether the gateway accepts a cached token. A token can end before its expiry, for example when its key or agent is revoked, or when the
 * gateway has a new database. Only a 401 means that the token is refused. A gateway that is stopped, slow or busy says nothing about the token.
 */
async function isStillTaken({ access_token, base_url }: KeptToken): Promise<boolean> {
  const { gatewayFetch } = await import('../gateway-fetch.ts')
  try {
    const reply = await gatewayFetch(base_url, checkTimeoutMs)(`${base_url}/v1/me/whoami`, { headers: { authorization: `Bearer ${access_token}` } })
    await reply.body?.cancel()
    return reply.status !== 401
  } catch {
    return true
  }
}

async function mint({ baseUrl, credential, agent, scope, ttlS }: TokenParams, settings: ClientSettings): Promise<KeptToken> {
  const [{ createAgentTokenProvider }, { gatewayFetch }] = await Promise.all([import('../../agents/toolkit/token-provider.ts'), import('../gateway-fetch.ts')])
  try {
    const provider = createAgentTokenProvider({ baseUrl, agent, credential: credential.reveal(), scope, ttlS, fetch: gatewayFetch(baseUrl) })
    const { token, agentId, scope: given, expiresAtMs, expiresInS } = await provider.get()
    return {
      access_token: token,
      base_url: baseUrl,
      agent_id: agentId,
      scope: given,
      minted_at_ms: expiresAtMs - expiresInS * 1000,
      expires_at_ms: expiresAtMs,
    }
  } catch (thrown) {
    throw mintErrorOf(thrown, agent, settings)
  }
}

function mintErrorOf(thrown: unknown, agent: string, settings: ClientSettings): unknown {
  const error = commandErrorOf(thrown, settings)
  if (!(error instanceof CommandError)) return error
  const { exitCode, code, status, evidence } = error
  const because = (message: string): CommandError => new CommandError(message, { exitCode, code, status, evidence, cause: thrown })
  if (code === 'not_found') return because(`there is no agent "${agent}" that is active. brigade agent list shows them, brigade agent create makes one.`)
  if (code === 'agent_revoked') return because(`the agent "${agent}" was revoked permanently. brigade agent create makes another one.`)
  if (code === 'forbidden') return because(`${error.message} Tokens are minted by an API key of scope full; ${settings.credentialFrom} does not hold one.`)
  return error
}

function printToken(kept: KeptToken, flags: TokenFlags): void {
  const { access_token, agent_id, scope, expires_at_ms } = kept
  const header = `Bearer ${access_token}`
  if (flags.header === true) printLine(`Authorization: ${header}`)
  else if (flags.headersJson === true) printJson({ Authorization: header })
  else if (flags.json !== true) printLine(access_token)
  else {
    const expires_in = Math.floor((expires_at_ms - systemClock.nowMs()) / 1000)
    printJson({ access_token, token: access_token, token_type: 'Bearer', expires_in, expires_at: new Date(expires_at_ms).toISOString(), agent_id, scope })
  }
}
