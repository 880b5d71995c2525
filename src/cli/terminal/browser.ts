import { spawn } from 'node:child_process'
import { systemClock } from '../../platform/clock.ts'

/** How long an opener may take. One that still runs then has opened a browser and waits for it. */
const openerMs = 3_000

/** Opens the address in the person's browser. Resolves to false when this computer has no browser, or when its opener fails. */
export function openInBrowser(url: string): Promise<boolean> {
  const [command, ...before] =
    process.platform === 'darwin' ? ['open'] : process.platform === 'win32' ? ['rundll32', 'url.dll,FileProtocolHandler'] : ['xdg-open']
  return new Promise(resolve => {
    const child = spawn(command ?? '', [...before, url], { stdio: 'ignore', detached: true })
    const waited = new AbortController()
    const ended = (isOpen: boolean): void => {
      waited.abort()
      resolve(isOpen)
    }
    child.once('error', () => ended(false))
    child.once('exit', code => ended(code === 0))
    systemClock.sleep(openerMs, waited.signal).then(
      () => {
        child.unref()
        resolve(true)
      },
      () => undefined,
    )
  })
}
