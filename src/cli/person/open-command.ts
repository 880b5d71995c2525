import type { Command } from 'commander'
import { addExamples } from '../client-command.ts'
import { type ClientFlags, clientSettings } from '../client-settings.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { gatewayFetch } from '../gateway-fetch.ts'

interface OpenFlags extends Pick<ClientFlags, 'baseUrl' | 'json'> {
  readonly browser: boolean
  readonly email?: string
}

/** Maximum wait for the gateway. */
const patienceMs = 10_000

/** Adds the command `brigade open`. */
export function addOpenCommand(program: Command): void {
  const command = program
    .command('open')
    .description('open the console in the browser; on the computer of the gateway with a one-time link that signs you in')
    .option('--base-url <url>', 'address of the gateway (default: $BRIGADE, then that of brigade login, then http://127.0.0.1:8787)')
    .option('--email <email>', 'person to sign in, on the computer of the gateway (default: owner@localhost)')
    .option('--no-browser', 'only print the address')
    .option('--json', 'print JSON, and open nothing')
  addExamples(command, [
    ['brigade open', 'the console of the gateway'],
    ['brigade open --no-browser', 'for a browser on another computer'],
  ])
  command.action(open)
}

async function open({ baseUrl: named, browser, email, json }: OpenFlags): Promise<void> {
  const { baseUrl } = clientSettings(named === undefined ? {} : { baseUrl: named })
  const reply = await gatewayFetch(baseUrl, patienceMs)(`${baseUrl}/livez`)
  await reply.body?.cancel()
  const { firstOwner, localSignInLink } = await import('../operator/local-link.ts')
  const link = await localSignInLink(baseUrl, email ?? firstOwner)
  const url = link ?? `${baseUrl}/console`
  if (json === true) return printJson({ url, signs_in: link === null ? null : (email ?? firstOwner) })
  if (browser && process.stdout.isTTY === true && (await opens(url, link !== null)))
    printLine(`Opened ${plain(link === null ? url : `${baseUrl}/console`)} in the browser.`)
  else printLine(plain(url))
  printLine(
    link === null
      ? 'Sign in there: with the identity provider that the page shows, or with a link that the operator makes (brigade admin sign-in).'
      : `The link signs in ${plain(email ?? firstOwner)} and works once.`,
  )
}

/** Opens the address in the browser. A link that signs a person in is no argument of a program. */
async function opens(url: string, isSecret: boolean): Promise<boolean> {
  if (isSecret) return await (await import('../terminal/private-link.ts')).openPrivately(url)
  return await (await import('../terminal/browser.ts')).openInBrowser(url)
}
