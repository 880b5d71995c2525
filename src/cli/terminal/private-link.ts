/**
 * Opens a link that signs a person in. Every user of a computer can read the arguments of its processes, so the browser gets the path of a page that only this
 * user can read. The page goes on to the link. Decision 0807 gives the reasons.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { userConfigFolder } from '../../platform/config.ts'
import { openInBrowser } from './browser.ts'

const pageName = 'brigade-open.html'
const settingsMs = 2_000

/** Opens the link in the person's browser. Resolves to false when this computer has no browser, or when the page cannot be written. */
export async function openPrivately(link: string): Promise<boolean> {
  let page: string
  try {
    page = writePage(folderOfPage(), link)
  } catch {
    return false
  }
  return await openInBrowser(page)
}

/** Returns the folder of this user that the browser can read. A browser from a snap reads no hidden folder, and has a folder of its own. */
function folderOfPage(): string {
  const snap = process.platform === 'linux' ? snapOfBrowser() : null
  const folder = snap === null ? null : join(homedir(), 'snap', snap, 'common')
  return folder !== null && existsSync(folder) ? folder : userConfigFolder()
}

/** Returns the name of the snap of the default browser. The desktop file of a snap has the name `<snap>_<program>.desktop`. */
function snapOfBrowser(): string | null {
  const { stdout } = spawnSync('xdg-settings', ['get', 'default-web-browser'], { encoding: 'utf8', timeout: settingsMs, stdio: ['ignore', 'pipe', 'ignore'] })
  return /^([a-z0-9-]+)_[^/]+\.desktop\s*$/.exec(stdout ?? '')?.[1] ?? null
}

/** Writes the page, which replaces that of an earlier link. Only this user can read it, from its first byte on. Returns its path. */
function writePage(folder: string, link: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, pageName)
  const draft = `${path}.${process.pid}`
  rmSync(draft, { force: true })
  writeFileSync(draft, pageOf(link), { mode: 0o600, flag: 'wx' })
  renameSync(draft, path)
  return path
}

function pageOf(link: string): string {
  const address = new URL(link).href.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${address}">
<title>Brigade</title>
<p><a href="${address}">Open the console</a></p>
</html>
`
}
