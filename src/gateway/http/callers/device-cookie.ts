import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { parseCookie, stringifySetCookie } from 'cookie'
import type { Clock } from '../../../platform/clock.ts'
import { deriveKey } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'

/** The cookie distinguishes browsers at one address while nobody is signed in. It names no person, and the gateway does not store it. */
export const deviceCookie = 'br_device'

export interface DeviceCookieDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly masterKey: Buffer
  /** Keys whose cookies stay valid while the master key is changed. */
  readonly otherMasterKeys?: readonly Buffer[]
  readonly baseUrl: () => string
}

/**
 * Maximum number of new cookies for one address in a clock hour. The project chose this number. All browsers of an office get their cookies within a day,
 * and a script gains nothing by discarding cookies.
 */
const issuedPerHourMax = 10
/** Maximum number of addresses that get cookies in one hour. After that, browsers at new addresses get no cookie and count by address. */
const addressesMax = 50_000
const hourMs = 3_600_000
const lifeSeconds = 365 * 24 * 3600
const idBytes = 12

/** Makes and checks signed device cookies. A forged cookie counts as no cookie. */
export class DeviceCookies {
  readonly #deps: DeviceCookieDeps
  readonly #key: Buffer
  /** The key that signs, then the other keys whose signatures are valid. */
  readonly #keys: readonly Buffer[]
  #hour = 0
  #issued = new Map<string, number>()

  constructor(deps: DeviceCookieDeps) {
    this.#deps = deps
    this.#key = deriveKey(deps.masterKey, 'device-cookie')
    this.#keys = [this.#key, ...(deps.otherMasterKeys ?? []).map(key => deriveKey(key, 'device-cookie'))]
  }

  /** Returns the device id of the cookie header, or null when there is no cookie with a valid signature. */
  read(cookieHeader: string | undefined): string | null {
    const value = cookieHeader === undefined ? undefined : parseCookie(cookieHeader)[deviceCookie]
    const [id, mac, ...rest] = value?.split('.') ?? []
    if (id === undefined || mac === undefined || rest.length > 0) return null
    const given = Buffer.from(mac)
    const isOurs = this.#keys.some(key => {
      const expected = Buffer.from(macOf(key, id))
      return expected.length === given.length && timingSafeEqual(expected, given)
    })
    return isOurs ? id : null
  }

  /**
   * Makes a cookie for a browser. Returns null for programs, for pages of other sites (the browser would not keep the cookie), and for addresses that have
   * already received their maximum number of cookies.
   */
  issue(headers: IncomingHttpHeaders, network: string): { device: string; setCookie: string } | null {
    if (!isOwnBrowser(headers) || !this.#mayIssue(network)) return null
    const device = this.#deps.ids.secret('', idBytes)
    const setCookie = stringifySetCookie({
      name: deviceCookie,
      value: `${device}.${macOf(this.#key, device)}`,
      httpOnly: true,
      sameSite: 'lax',
      secure: this.#deps.baseUrl().startsWith('https:'),
      path: '/',
      maxAge: lifeSeconds,
    })
    return { device, setCookie }
  }

  #mayIssue(network: string): boolean {
    const hour = Math.floor(this.#deps.clock.nowMs() / hourMs)
    if (hour !== this.#hour) {
      this.#hour = hour
      this.#issued = new Map()
    }
    const issued = this.#issued.get(network) ?? 0
    if (issued >= issuedPerHourMax || (issued === 0 && this.#issued.size >= addressesMax)) return false
    this.#issued.set(network, issued + 1)
    return true
  }
}

function macOf(key: Buffer, id: string): string {
  return createHmac('sha256', key).update(id).digest('base64url')
}

/** Every current browser sends Sec-Fetch-Site. Sec-Fetch-Mode does not show a browser, because `fetch` in Node.js also sends it. */
function isOwnBrowser(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  return site !== undefined && site !== 'cross-site'
}
