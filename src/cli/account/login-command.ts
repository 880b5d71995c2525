import type { Command } from 'commander'
import { addExamples } from '../client-command.ts'
import { addressOf } from '../client-settings.ts'

interface LoginFlags {
  readonly baseUrl?: string
  readonly browser: boolean
  readonly link?: string
}

/** Adds the command `brigade login`. */
export function addLoginCommand(program: Command): void {
  const command = program
    .command('login')
    .description('sign in to a gateway in the browser and keep an API key for this user')
    .option('--base-url <url>', 'address of the gateway (default: $BRIGADE, then BASE_URL, or HOST and PORT)')
    .option('--no-browser', 'only print the address')
    .option('--link <url>', 'sign in with a one-time link of the operator, without a browser; for keys, providers and logs')
  addExamples(command, [
    ['brigade login', 'to the gateway of this computer'],
    ['brigade login --base-url https://gw.example.com', 'to another gateway'],
    ['brigade login --link https://gw.example.com/auth/link?token=…', 'as a person, for brigade keys, providers and logs'],
  ])
  command.action(run)
}

async function run({ baseUrl, browser, link }: LoginFlags): Promise<void> {
  if (link !== undefined) return (await import('../person/link-login.ts')).loginByLink(link, baseUrl)
  const [{ login }, { openInBrowser }, { systemClock }, { systemIds }, config] = await Promise.all([
    import('./login.ts'),
    import('../terminal/browser.ts'),
    import('../../platform/clock.ts'),
    import('../../platform/values/ids.ts'),
    import('../../platform/config.ts'),
  ])
  await login({
    baseUrl: baseUrl === undefined ? await defaultGateway(config.clientEnvironment().address) : addressOf(baseUrl, '--base-url'),
    folder: config.userConfigFolder(),
    clock: systemClock,
    ids: systemIds,
    openBrowser: browser && process.stdout.isTTY ? url => void openInBrowser(url) : null,
    print: line => process.stdout.write(`${line}\n`),
  })
}

/** Returns the address in BRIGADE. Otherwise returns the address of the gateway in the settings of this computer. */
async function defaultGateway(named: string | null): Promise<string> {
  if (named !== null) return addressOf(named, 'BRIGADE')
  const [{ publicBaseUrl }, { loadConfig }] = await Promise.all([import('../../platform/public-base-url.ts'), import('../../platform/config.ts')])
  return publicBaseUrl(loadConfig())
}
