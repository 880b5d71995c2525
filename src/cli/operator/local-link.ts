import { askAdmin } from '../../operations/admin/admin-socket.ts'
import { type Config, loadConfig } from '../../platform/config.ts'
import { CommandError } from '../command-error.ts'

/** The owner that the first start of an installation makes. */
export const firstOwner = 'owner@localhost'

/**
 * Makes a one-time sign-in link, as `brigade admin sign-in` does. Returns null on a computer that does not have the gateway's configuration, and when that
 * configuration is one of another gateway. Throws CommandError when the gateway knows no such person.
 */
export async function localSignInLink(baseUrl: string, email: string): Promise<string | null> {
  const config = ownConfig()
  if (config === null) return null
  const command = { name: 'sign-in', args: { email } }
  try {
    // Without a database of its own and without a running gateway there is no installation here, and none is made.
    const asked = config.DATABASE_URL === null ? await askAdmin(config.DATA_DIR, command) : { result: await onPostgres(config, command) }
    const url = (asked?.result as { url?: string } | undefined)?.url
    return url !== undefined && isSame(url, baseUrl) ? url : null
  } catch (cause) {
    throw new CommandError(cause instanceof Error ? cause.message : 'no sign-in link could be made.', { cause })
  }
}

async function onPostgres(config: Config, command: { name: string; args: { email: string } }): Promise<object> {
  return (await import('./admin/run-admin-here.ts')).runAdminHere(config, command)
}

/** Returns the configuration of this computer. Null when it is invalid, because then no gateway runs with it. */
function ownConfig(): Config | null {
  try {
    return loadConfig()
  } catch {
    return null
  }
}

const loopback = new Set(['127.0.0.1', '[::1]', 'localhost'])

function isSame(link: string, baseUrl: string): boolean {
  const [ours, called] = [new URL(link), new URL(baseUrl)]
  if (loopback.has(ours.hostname) && loopback.has(called.hostname)) return ours.port === called.port
  return ours.origin === called.origin
}
