import { once } from 'node:events'
import { type Command, Option } from 'commander'
import type { TokenSource } from '../../agents/toolkit/token-source.ts'
import { toolsetNames } from '../../connect/connect-plan.ts'
import { version } from '../../version.ts'
import { addExamples } from '../client-command.ts'
import { type ClientFlags, clientSettings, credentialOf } from '../client-settings.ts'
import { wrongUsage } from '../command-error.ts'

interface BridgeFlags extends ClientFlags {
  readonly agent?: string
  readonly scope?: string
  readonly toolsets?: string
}

/** Adds the command `brigade mcp`. */
export function addMcpCommand(program: Command): void {
  const command = program
    .command('mcp')
    .description('an MCP server on stdin and stdout that carries everything to the gateway, with a credential that renews itself')
    .option('--agent <name>', 'act as this agent, on short-lived tokens minted with the key')
    .option('--scope <scope>', 'what the tokens may do, of "inference memory:read memory:write usage:read tools:call" (default: all that the agent may)')
    .option('--toolsets <list>', `only these tools: ${toolsetNames}`)
    .addOption(new Option('--base-url <url>', 'address of the gateway (default: $BRIGADE, then that of brigade login, then http://127.0.0.1:8787)'))
    .addOption(new Option('--key-file <path>', 'file with an API key or agent token (default: $BRIGADE_KEY, then that of brigade login)'))
  addExamples(command, [
    ['brigade mcp', 'with the key of brigade login, or of $BRIGADE_KEY'],
    ['brigade mcp --agent reviewer --toolsets memory', 'memory alone, as the agent reviewer'],
    ['brigade connect cursor --agent reviewer --write', 'puts such a line into the settings of a client'],
  ])
  command.action(run)
}

async function run(flags: BridgeFlags): Promise<void> {
  if (flags.scope !== undefined && flags.agent === undefined) throw wrongUsage('--scope is for the tokens of an agent: say --agent too.')
  const [{ runBridge }, { agentFetch }, { gatewayFetch }, { systemClock }] = await Promise.all([
    import('./mcp-bridge.ts'),
    import('../../agents/toolkit/agent-fetch.ts'),
    import('../gateway-fetch.ts'),
    import('../../platform/clock.ts'),
  ])
  const settings = clientSettings(flags)
  const url = new URL(`${settings.baseUrl}/mcp`)
  if (flags.toolsets !== undefined) url.searchParams.set('toolsets', flags.toolsets)
  if (process.stdin.isTTY)
    process.stderr.write('brigade mcp: this is for programs: it waits for MCP messages on stdin. brigade connect puts it into the settings of a client.\n')
  // A call has no time limit. Its client can cancel it.
  const inner = gatewayFetch(settings.baseUrl, null)
  const exitCode = await runBridge({
    url: url.href,
    fetch: agentFetch(await sourceOf(flags, settings.baseUrl), inner, { userAgent: `brigade-mcp/${version}` }),
    called: settings,
    input: process.stdin,
    output: process.stdout,
    log: line => process.stderr.write(`brigade mcp: ${line}\n`),
    clock: systemClock,
  })
  process.exitCode = exitCode
  if (process.stdout.writableLength > 0) await once(process.stdout, 'drain')
}

/**
 * Returns the source of credentials. The key is read again for every token, so that a new `brigade login` takes effect immediately. Without a login,
 * every reply says that a login is missing.
 */
async function sourceOf(flags: BridgeFlags, baseUrl: string): Promise<TokenSource> {
  const key = (): string => credentialOf(clientSettings(flags)).reveal()
  if (flags.agent === undefined) return { getToken: async () => key() }
  const [{ createAgentTokenProvider }, { gatewayFetch }] = await Promise.all([import('../../agents/toolkit/token-provider.ts'), import('../gateway-fetch.ts')])
  return createAgentTokenProvider({
    baseUrl,
    agent: flags.agent,
    credential: key,
    fetch: gatewayFetch(baseUrl),
    ...(flags.scope === undefined ? {} : { scope: flags.scope }),
  })
}
