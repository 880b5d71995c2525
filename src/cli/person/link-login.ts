import { userConfigFolder } from '../../platform/config.ts'
import { addressOf } from '../client-settings.ts'
import { plain, printLine } from '../command-output.ts'
import { saveSession } from './session-store.ts'
import { signInByLink } from './sign-in-by-link.ts'

/** Signs in with a one-time link and keeps the session for this user. Without `named`, the gateway is the one of the link. Throws CommandError. */
export async function loginByLink(link: string, named: string | undefined): Promise<void> {
  const baseUrl = addressOf(named ?? link.replace(/\/auth\/link.*$/s, ''), named === undefined ? '--link' : '--base-url')
  const cookie = await signInByLink(baseUrl, link)
  saveSession(userConfigFolder(), { base_url: baseUrl, cookie })
  printLine(`Signed in to ${plain(baseUrl)}. brigade keys, providers and logs act as this person; brigade logout ends the session.`)
}
